"""Makes the small files of good/ and bad/ and bad/expected.txt.  Needs numpy and SciPy; run it after a change and commit
what it writes.  Usage: python3 make_files.py

expected.txt: name, status, the message after the folder's name, separated by tabs."""
import gzip, io, os, struct, zipfile
import numpy as np
import scipy.sparse as sp

HERE = os.path.dirname(os.path.abspath(__file__))
MM = "%%MatrixMarket matrix coordinate "


def npz(drop=(), **members):
    """A SciPy archive of a 3 x 3 matrix with some members replaced."""
    full = dict(indices=np.array([0, 2, 1], np.int32), indptr=np.array([0, 1, 2, 3], np.int32),
                format=np.array(b"csr"), shape=np.array([3, 3]), data=np.array([1.0, 2.0, 3.0]))
    full.update(members)
    return archive(full, drop)


def snapshot(drop=(), **members):
    """The same with what tiga_graph_write_snapshot adds."""
    more = dict(tiga_transposed_indptr=np.array([0, 1, 2, 3]), tiga_transposed_indices=np.array([0, 2, 1], np.int32),
                tiga_transposed_edges=np.array([0, 2, 1], np.int32),
                tiga_statistics=np.array([1, 0, 1, 0, 0, 3] + 62 * [0]))
    more.update(members)
    return npz(drop, **more)


def archive(full, drop):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for name, value in full.items():
            if name not in drop:
                member = io.BytesIO()
                np.save(member, value)
                z.writestr(zipfile.ZipInfo(name + ".npy", (1980, 1, 1, 0, 0, 0)), member.getvalue())
    return out.getvalue()


def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def gz(text):
    return gzip.compress(text.encode(), mtime=0)


def flip(data, at):
    return data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1:]


lines = "".join("%d %d\n" % (i, i * 7 % 1000) for i in range(1000))
good_npz = npz()
BAD = [
    # Matrix Market: banner and sizes
    ("no_banner.mtx", "3 3 1\n1 1 1\n", "E_FORMAT", "1: a Matrix Market file begins with %%MatrixMarket: '3'"),
    ("array.mtx", "%%MatrixMarket matrix array real general\n1 1\n5\n", "E_UNSUPPORTED",
     "1: dense 'array' matrices are not supported, only 'coordinate': 'array'"),
    ("vector.mtx", "%%MatrixMarket vector coordinate real general\n1 1\n", "E_UNSUPPORTED",
     "1: only 'matrix' objects are supported: 'vector'"),
    ("complex.mtx", MM + "complex general\n1 1 1\n1 1 1 0\n", "E_UNSUPPORTED", "1: complex values are not supported: 'complex'"),
    ("hermitian.mtx", MM + "real hermitian\n1 1 1\n1 1 1\n", "E_UNSUPPORTED",
     "1: hermitian matrices are not supported: 'hermitian'"),
    ("quaternion.mtx", MM + "quaternion general\n", "E_FORMAT", "1: expected real, integer or pattern: 'quaternion'"),
    ("lopsided.mtx", MM + "real lopsided\n", "E_FORMAT", "1: expected general, symmetric or skew-symmetric: 'lopsided'"),
    ("short_banner.mtx", "%%MatrixMarket matrix coordinate\n1 1 0\n", "E_FORMAT",
     "1: expected real, integer or pattern: '%%MatrixMarket matrix coordinate'"),
    ("long_banner.mtx", MM + "real general extra\n1 1 0\n", "E_FORMAT", "1: more words than the banner has: 'extra'"),
    ("skew_pattern.mtx", MM + "pattern skew-symmetric\n2 2 1\n2 1\n", "E_FORMAT",
     "1: a pattern cannot be skew-symmetric: 'skew-symmetric'"),
    ("no_sizes.mtx", MM + "real general\n% only comments\n", "E_FORMAT", "3: the line of sizes is missing"),
    ("two_sizes.mtx", MM + "real general\n3 3\n1 1 1\n", "E_FORMAT", "2: number of entries is missing: '3 3'"),
    ("four_sizes.mtx", MM + "real general\n3 3 1 1\n1 1 1\n", "E_FORMAT", "2: more than three sizes: '1'"),
    ("word_size.mtx", MM + "real general\n3 three 1\n1 1 1\n", "E_FORMAT", "2: number of columns is not a whole number: 'three'"),
    ("negative_size.mtx", MM + "real general\n-3 3 1\n1 1 1\n", "E_RANGE", "2: number of rows is negative: '-3'"),
    ("real_size.mtx", MM + "real general\n3 3.5 1\n1 1 1\n", "E_RANGE", "2: number of columns is not a whole number: '3.5'"),
    ("huge_size.mtx", MM + "real general\n99999999999999999999 3 1\n1 1 1\n", "E_RANGE",
     "2: number of rows is too large: '99999999999999999999'"),
    ("huge_rows.mtx", MM + "pattern general\n9007199254740992 3 1\n1 1\n", "E_MEMORY",
     "2: a graph of 9007199254740992 rows needs 67108864.0 GiB for the rows alone: '9007199254740992 3 1'"),
    ("not_square.mtx", MM + "real symmetric\n3 4 1\n1 1 1\n", "E_FORMAT", "2: a symmetric matrix must be square, this one is 3 x 4: '3 4 1'"),
    # Matrix Market: entries
    ("zero_based.mtx", MM + "real general\n3 3 2\n1 1 1\n0 2 1\n", "E_RANGE", "4: row is not in 1 .. 3: '0'"),
    ("column_range.mtx", MM + "real general\n3 3 2\n1 1 1\n2 4 1\n", "E_RANGE", "4: column is not in 1 .. 3: '4'"),
    ("negative_row.mtx", MM + "real general\n3 3 1\n-1 1 1\n", "E_RANGE", "3: row is negative: '-1'"),
    ("word_entry.mtx", MM + "real general\n3 3 1\n1 one 1\n", "E_FORMAT", "3: column is not a whole number: 'one'"),
    ("word_value.mtx", MM + "real general\n3 3 1\n1 1 1.0x\n", "E_FORMAT", "3: value is not a number: '1.0x'"),
    ("no_value.mtx", MM + "real general\n3 3 1\n1 1\n", "E_FORMAT", "3: value is missing: '1 1'"),
    ("real_in_integer.mtx", MM + "integer general\n3 3 1\n1 1 1.5\n", "E_FORMAT", "3: value is not a whole number: '1.5'"),
    ("big_integer.mtx", MM + "integer general\n3 3 1\n1 1 9223372036854775808\n", "E_RANGE",
     "3: value does not fit into 64 bits: '9223372036854775808'"),
    ("big_real.mtx", MM + "real general\n3 3 2\n1 1 inf\n2 1 1e999\n", "E_RANGE", "4: value does not fit into f64: '1e999'"),
    ("big_negative_real.mtx", MM + "real general\n3 3 1\n2 1 -1e309\n", "E_RANGE",
     "3: value does not fit into f64: '-1e309'"),
    ("skew_smallest.mtx", MM + "integer skew-symmetric\n3 3 1\n2 1 -9223372036854775808\n", "E_RANGE",
     "3: value does not fit into 64 bits with its sign turned: '-9223372036854775808'"),
    ("big_index.mtx", MM + "pattern general\n3 3 1\n1 99999999999999999999\n", "E_RANGE",
     "3: column is larger than 2^63 - 1: '99999999999999999999'"),
    ("value_in_pattern.mtx", MM + "pattern general\n3 3 1\n1 1 5\n", "E_FORMAT", "3: more columns than the 2 expected: '5'"),
    ("comma.mtx", MM + "pattern general\n3 3 1\n1,1\n", "E_FORMAT", "3: column is not a whole number: ',1'"),
    ("one_number.mtx", MM + "pattern general\n3 3 1\n1\n", "E_FORMAT", "3: column is missing: '1'"),
    ("fewer.mtx", MM + "real general\n% c\n3 3 3\n1 1 1\n2 2 2\n", "E_FORMAT",
     "3: 3 entries are promised, the file has only 2: '3 3 3'"),
    ("more.mtx", MM + "real general\n3 3 1\n1 1 1\n\n2 2 2\n", "E_FORMAT", "5: more entries than the 1 that are promised: '2'"),
    ("absurd_entries.mtx", MM + "real general\n3 3 72057594037927936\n1 1 1\n", "E_FORMAT",
     "2: 72057594037927936 entries are promised, the file has only 1: '3 3 72057594037927936'"),
    ("skew_diagonal.mtx", MM + "real skew-symmetric\n3 3 1\n2 2 1.5\n", "E_FORMAT",
     "3: a value on the diagonal of a skew-symmetric matrix: '1.5'"),
    ("nul.mtx", MM + "real general\n3 3 1\n1 1\0 1\n", "E_FORMAT", "3: value is not a number: '\\x00'"),
    ("long_token.mtx", MM + "real general\n3 3 1\n" + "x" * 100 + " 1 1\n", "E_FORMAT",
     "3: row is not a whole number: '" + "x" * 48 + "...'"),
    # edge lists
    ("empty.txt", "", "E_FORMAT", None),
    ("only_comments.txt", "# nothing\n# here\n", "E_FORMAT", None),
    ("header_words.csv", "source,target\n0,1\n", "E_FORMAT", "1: source id is not a whole number: 'source,target'"),
    ("negative.txt", "# c\n0 1\n2 -4\n", "E_RANGE", "3: destination id is negative: '-4'"),
    ("real_id.txt", "0 1\n1.5 2\n", "E_FORMAT", "2: source id is not a whole number: '1.5'"),
    ("one_column.txt", "0 1\n\n7\n", "E_FORMAT", "3: destination id is missing: '7'"),
    ("weight_appears.txt", "0 1\n1 2 0.5\n", "E_FORMAT", "2: more columns than the 2 expected: '0.5'"),
    ("weight_vanishes.txt", "0 1 0.5\n1 2\n", "E_FORMAT", "2: value is missing: '1 2'"),
    ("word_weight.txt", "0 1 heavy\n", "E_FORMAT", "1: value is not a number: 'heavy'"),
    ("big_weight.txt", "0 1 2\n1 2 " + "9" * 400 + "\n", "E_RANGE",
     "2: value does not fit into f64: '" + "9" * 48 + "...'"),
    ("four_columns.txt", "0 1 5 1082040961\n", "E_FORMAT", "1: more columns than the 3 expected: '1082040961'"),
    ("huge_id.txt", "0 1\n5 9007199254740992\n", "E_MEMORY",
     "2: a graph of 9007199254740993 rows needs 67108864.0 GiB for the rows alone: '9007199254740992'"),
    ("too_large_id.txt", "0 1\n5 9223372036854775807\n", "E_RANGE", "2: destination id is larger than 2^56: '9223372036854775807'"),
    ("garbage.txt", bytes(range(256)), "E_FORMAT", None),
    ("binary.graph", b"\x7fELF" + bytes(60), "E_FORMAT", None),
    ("array.npy.txt", npy(np.zeros(3)), "E_FORMAT", None),
    # gzip
    ("truncated.txt.gz", gz(lines)[:1500], "E_FORMAT", None),
    ("no_tail.txt.gz", gz(lines)[:-8], "E_FORMAT", None),
    ("flipped.txt.gz", flip(gz(lines), 900), "E_FORMAT", None),
    ("checksum.txt.gz", flip(gz(lines), -5), "E_FORMAT", None),
    ("head_only.txt.gz", gz(lines)[:6], "E_FORMAT", "1: the gzip data is truncated, it ends in this line"),
    ("not_gzip.txt.gz", "0 1\n", "E_FORMAT", None),
    ("tail.txt.gz", gz("0 1\n") + b"hello", "E_FORMAT", None),
    ("late_tail.txt.gz", gz("0 1\n") + bytes(600) + b"x", "E_FORMAT", None),
    ("half_magic.txt.gz", gz("0 1\n") + b"\x1f", "E_FORMAT", None),
    ("mark.txt", b"\xef\xbb\xbf0 1\n1 x\n", "E_FORMAT", "2: destination id is not a whole number: 'x'"),
    ("only_mark.txt", b"\xef\xbb\xbf", "E_FORMAT", None),
    ("bad_inside.txt.gz", gz("0 1\n1 x\n"), "E_FORMAT", "2: destination id is not a whole number: 'x'"),
    # SciPy archives
    ("csc.npz", npz(format=np.array(b"csc")), "E_UNSUPPORTED", None),
    ("coo.npz", npz(format=np.array("coo")), "E_UNSUPPORTED", None),
    ("no_format.npz", npz(drop=("format",)), "E_FORMAT", None),
    ("no_indptr.npz", npz(drop=("indptr",)), "E_FORMAT", None),
    ("no_data.npz", npz(drop=("data",)), "E_FORMAT", None),
    ("number_format.npz", npz(format=np.array(7)), "E_FORMAT", None),
    ("float_indices.npz", npz(indices=np.array([0.0, 2.0, 1.0])), "E_TYPE", None),
    ("short_indices.npz", npz(indices=np.array([0, 2], np.int32)), "E_FORMAT", None),
    ("short_data.npz", npz(data=np.array([1.0])), "E_FORMAT", None),
    ("long_data.npz", npz(data=np.array([1.0, 2.0, 3.0, 4.0])), "E_FORMAT", None),
    ("long_indices.npz", npz(indices=np.array([0, 2, 1, 0], np.int32)), "E_FORMAT", None),
    ("long_double_data.npz", npz(data=np.array([1, 2, 3], np.longdouble)), "E_TYPE", None),
    ("matrix_data.npz", npz(data=np.ones((3, 1))), "E_TYPE", None),
    ("big_endian.npz", npz(indptr=np.array([0, 1, 2, 3], ">i4")), "E_TYPE", None),
    ("indptr_falls.npz", npz(indptr=np.array([0, 2, 1, 3])), "E_RANGE", None),
    ("indptr_begins.npz", npz(indptr=np.array([1, 1, 2, 3])), "E_RANGE", None),
    ("indptr_length.npz", npz(indptr=np.array([0, 1, 3])), "E_FORMAT", None),
    ("index_range.npz", npz(indices=np.array([0, 3, 1])), "E_RANGE", None),
    ("index_negative.npz", npz(indices=np.array([0, -1, 1], np.int32)), "E_RANGE", None),
    ("three_sizes.npz", npz(shape=np.array([3, 3, 3])), "E_FORMAT", None),
    ("negative_size.npz", npz(shape=np.array([3, -3])), "E_RANGE", None),
    ("truncated.npz", good_npz[:len(good_npz) // 2], "E_FORMAT", None),
    ("flipped.npz", flip(good_npz, good_npz.find(b"\x93NUMPY") + 128), "E_FORMAT", None),
    ("text.npz", "0 1\n", "E_FORMAT", None),
    ("dense.npz", "", "E_FORMAT", None),
    # what tiga_graph_write_snapshot adds
    ("part.npz", snapshot(drop=("tiga_transposed_edges",)), "E_FORMAT", None),
    ("t_indptr.npz", snapshot(tiga_transposed_indptr=np.array([0, 2, 1, 3])), "E_RANGE", None),
    ("t_indptr_end.npz", snapshot(tiga_transposed_indptr=np.array([0, 1, 2, 2])), "E_FORMAT", None),
    ("t_indptr_short.npz", snapshot(tiga_transposed_indptr=np.array([0, 1, 3])), "E_FORMAT", None),
    ("t_indptr_type.npz", snapshot(tiga_transposed_indptr=np.array([0, 1, 2, 3], np.int32)), "E_TYPE", None),
    ("t_indices.npz", snapshot(tiga_transposed_indices=np.array([0, 2, 3], np.int32)), "E_FORMAT", None),
    ("t_indices_type.npz", snapshot(tiga_transposed_indices=np.array([0, 2, 1])), "E_TYPE", None),
    ("t_edges.npz", snapshot(tiga_transposed_edges=np.array([0, 1, 2])), "E_FORMAT", None),
    ("t_edges_negative.npz", snapshot(tiga_transposed_edges=np.array([-1, 2, 1])), "E_FORMAT", None),
    ("t_edges_narrow.npz", snapshot(tiga_transposed_edges=np.array([0, 3, 1], np.int32)), "E_FORMAT", None),
    ("t_edges_large.npz", snapshot(tiga_transposed_edges=np.array([0, 2 + (1 << 32), 1])), "E_FORMAT", None),
    ("t_edges_float.npz", snapshot(tiga_transposed_edges=np.array([0., 2., 1.])), "E_TYPE", None),
    ("t_edges_long.npz", snapshot(tiga_transposed_edges=np.array([0, 2, 1, 3])), "E_FORMAT", None),
    ("statistics.npz", snapshot(tiga_statistics=np.array([1, 0, 1, 1, 0, 3] + 62 * [0])), "E_FORMAT", None),
    ("statistics_short.npz", snapshot(tiga_statistics=np.array([1, 0, 1, 1])), "E_FORMAT", None),
    # numpy arrays
    ("truncated.npy", npy(np.zeros(100))[:500], "E_FORMAT", None),
    ("trailing.npy", npy(np.zeros(4)) + b"x", "E_FORMAT", None),
    ("big_endian.npy", npy(np.zeros(4, ">f8")), "E_TYPE", None),
    ("dates.npy", npy(np.zeros(4, "M8[s]")), "E_TYPE", None),
    ("text.npy", "1 2 3\n", "E_FORMAT", None),
    ("empty.npy", "", "E_FORMAT", None),
]
MESSAGES = {  # without a line: what is wrong is not in a line of text
    "empty.txt": ": holds no edges",
    "only_mark.txt": ": holds no edges",
    "only_comments.txt": ": holds no edges",
    "garbage.txt": ": is neither text nor a format known here (Matrix Market, edge list, SciPy .npz)",
    "binary.graph": ": is neither text nor a format known here (Matrix Market, edge list, SciPy .npz)",
    "array.npy.txt": ": is a numpy array, not a graph",
    "truncated.txt.gz": ":379: the gzip data is truncated, it ends in this line: '378'",
    "no_tail.txt.gz": ":1001: the gzip data is truncated, it ends in this line",
    "flipped.txt.gz": ":974: the gzip data is damaged after this line: '99'",
    "checksum.txt.gz": ":1001: the gzip data is damaged after this line",
    "tail.txt.gz": ": garbage after the end of the gzip data (bytes: 5)",
    "late_tail.txt.gz": ": garbage after the end of the gzip data (bytes: 601)",
    "half_magic.txt.gz": ": garbage after the end of the gzip data (bytes: 1)",
    "not_gzip.txt.gz": ": not gzip data",
    "csc.npz": ": a 'csc' matrix; only csr is supported, save a.tocsr()",
    "coo.npz": ": a 'coo' matrix; only csr is supported, save a.tocsr()",
    "no_format.npz": ": no member 'format.npy': not a sparse matrix that SciPy saved",
    "no_indptr.npz": ": no member 'indptr.npy': not a sparse matrix that SciPy saved",
    "no_data.npz": ": no member 'data.npy': not a sparse matrix that SciPy saved",
    "number_format.npz": " (format.npy): is not the name of a format",
    "float_indices.npz": " (indices.npy): must be a vector of int32 or int64",
    "short_indices.npz": ": indptr promises 3 entries, indices has 2",
    "short_data.npz": ": data has 1 elements, indices has 3",
    "long_data.npz": ": data has 4 elements, indices has 3",
    "long_indices.npz": ": data has 3 elements, indices has 4",
    "long_double_data.npz": " (data.npy): element type '<f16' is not supported; use bool, int8, uint8, int32, int64, float16, float32, float64, complex64 or complex128 (uint16 holds the bits of bf16)",
    "matrix_data.npz": " (data.npy): must be a vector",
    "big_endian.npz": " (indptr.npy): big-endian elements ('>i4') are not supported; convert with a.astype('<i4')",
    "indptr_falls.npz": ": row 1: offsets fall from 2 to 1",
    "indptr_begins.npz": ": offsets begin with 1, not with 0",
    "indptr_length.npz": " (indptr.npy): 3 elements, 3 rows need one more than rows",
    "index_range.npz": ": edge 1 (row 1): source 3 is not in 0 .. 2",
    "index_negative.npz": ": edge 1 (row 1): source -1 is not in 0 .. 2",
    "three_sizes.npz": " (shape.npy): 3 sizes, a matrix has 2",
    "negative_size.npz": " (shape.npy): a size is negative or above 2^56",
    "truncated.npz": ": damaged or truncated zip archive",
    "flipped.npz": " (indices.npy): damaged: the checksum is wrong",
    "text.npz": ": not an .npz file (no zip archive)",
    "dense.npz": ": not an .npz file (no zip archive)",
    "part.npz": ": has a member 'tiga_statistics.npy', but no 'tiga_transposed_edges.npy'",
    "t_indptr.npz": " (tiga_transposed_indptr.npy): row 1: offsets fall from 2 to 1",
    "t_indptr_end.npz": " (tiga_transposed_indptr.npy): ends with 2, the graph has 3 edges",
    "t_indptr_short.npz": " (tiga_transposed_indptr.npy): 3 elements, this graph needs 4",
    "t_indptr_type.npz": " (tiga_transposed_indptr.npy): i32 elements, this graph needs i64",
    "t_indices.npz": ": the transposed relation in the file is not that of the graph (its edge 2: edge 1 to row 3, source 2); write the file anew",
    "t_indices_type.npz": " (tiga_transposed_indices.npy): i64 elements, this graph needs i32",
    "t_edges.npz": ": the transposed relation in the file is not that of the graph (its edge 1: edge 1 to row 2, source 1); write the file anew",
    "t_edges_negative.npz": ": the transposed relation in the file is not that of the graph (its edge 0: edge -1 to row 0, source 0); write the file anew",
    "t_edges_narrow.npz": ": the transposed relation in the file is not that of the graph (its edge 1: edge 3 to row 2, source 1); write the file anew",
    "t_edges_large.npz": " (tiga_transposed_edges.npy): element 1 is 4294967298, the graph has 3 edges; write the file anew",
    "t_edges_float.npz": " (tiga_transposed_edges.npy): must be a vector of int32 or int64",
    "t_edges_long.npz": " (tiga_transposed_edges.npy): 4 elements, this graph needs 3",
    "statistics.npz": " (tiga_statistics.npy): number 3 is 1, for this graph it would be 0; write the file anew",
    "statistics_short.npz": " (tiga_statistics.npy): 4 elements, this graph needs 68",
    "truncated.npy": ": the header promises 800 bytes of data, the file has 372",
    "trailing.npy": ": the header promises 32 bytes of data, the file has 33",
    "big_endian.npy": ": big-endian elements ('>f8') are not supported; convert with a.astype('<f8')",
    "dates.npy": ": element type '<M8[s]' is not supported; use bool, int8, uint8, int32, int64, float16, float32, float64, complex64 or complex128 (uint16 holds the bits of bf16)",
    "text.npy": ": not a .npy file",
    "empty.npy": ": not a .npy file",
}
GOOD = [
    ("general.mtx", MM + "real general\n% two of one pair\n3 4 4\n1 3 0.5\n3 2 -1e3\n1 1 2\n1 1 2\n"),
    ("symmetric.mtx", MM + "integer symmetric\n4 4 3\n2 1 5\n3 3 6\n4 2 -7\n"),
    ("skew.mtx", MM + "real skew-symmetric\n3 3 2\n2 1 1.25\n3 1 -2\n"),
    ("pattern.mtx", MM + "pattern general\r\n3 3 2\r\n1 2\r\n3 1\r\n"),
    ("snap.txt", "# Directed graph\n# FromNodeId\tToNodeId\n0\t3\r\n3\t1\r\n2\t2\r\n"),
    ("weighted.el", "0 1 2\n1 2 3\n2 0 0.125\n"),
    ("comma.csv", "0,1\n1,2\n"),
    ("zipped.txt.gz", gz("0 1\n1 2\n")),
    ("padded.txt.gz", gz("0 1\n1 2\n") + bytes(100)),
    ("mark.mtx", b"\xef\xbb\xbf" + (MM + "real general\n2 2 1\n1 2 0.5\n").encode()),
    ("stored.npz", good_npz),
    ("snapshot.npz", snapshot()),
    ("snapshot_wide.npz", snapshot(tiga_transposed_edges=np.array([0, 2, 1]))),
    ("array.npy", npy(np.arange(12, dtype=np.float32).reshape(3, 4, order="F"))),
]


def write(folder, name, content):
    with open(os.path.join(HERE, folder, name), "wb") as f:
        f.write(content.encode("latin-1") if isinstance(content, str) else content)


table = ""
for name, content, status, message in BAD:
    write("bad", name, content)
    table += "%s\t%s\t%s\n" % (name, status, MESSAGES[name] if message is None else ":" + message)
write("bad", "expected.txt", table)
for name, content in GOOD:
    write("good", name, content)
sp.save_npz(os.path.join(HERE, "good", "scipy.npz"), sp.csr_matrix(([1.5, 2.5], ([0, 2], [1, 1])), shape=(3, 5)))
