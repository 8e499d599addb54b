# INPUT, NAME -> OUTPUT: a header as the C string NAME, without its #include lines (the prelude of emitted code provides
# the types, so that it also compiles where there are no headers at all).
file(READ ${INPUT} text)
string(REGEX REPLACE "#include <[a-z]+\\.h>\n" "" text "${text}")
string(REPLACE "\\" "\\\\" text "${text}")
string(REPLACE "\"" "\\\"" text "${text}")
string(REPLACE "\n" "\\n\"\n    \"" text "${text}")
file(WRITE ${OUTPUT} "extern const char ${NAME}[];\nconst char ${NAME}[] =\n    \"${text}\";\n")
