/* cuda_sim.h: what a CUDA compiler would bring along, for a CUDA C text that is compiled as C++17 and run on the
 * simulated device (sim.h).  It goes in front of the text with -include.  No other headers: a text that needs one is
 * not self-contained, and must fail here as it would under NVRTC.
 *
 * Every load and store of the text is seen by the device because the text is compiled with -fsanitize=thread, whose
 * hooks sim_memory.c provides.  Functions here that touch the host's memory are therefore marked CUDA_SIM_HOST. */
#ifndef CUDA_SIM_H
#define CUDA_SIM_H
#define CUDA_SIM 1

#define CUDA_SIM_HOST __attribute__((no_sanitize("thread")))
#define __global__ __attribute__((used))
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
/* Static shared memory of all kernels of a text lies in one section, whose ends the linker names. */
#define __shared__ static __attribute__((section("cuda_sim_shared"), used))
#define __constant__ __attribute__((section("cuda_sim_constant"), used))
#define __grid_constant__

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
/* The scheduler writes these whenever it switches to another thread. */
struct cuda_sim_builtin_t {
    uint3 thread, block, block_size, grid_size;
};
extern "C" cuda_sim_builtin_t cuda_sim_builtin;
#define threadIdx (cuda_sim_builtin.thread)
#define blockIdx (cuda_sim_builtin.block)
#define blockDim (cuda_sim_builtin.block_size)
#define gridDim (cuda_sim_builtin.grid_size)
static constexpr int warpSize = 32;

/* ---- barriers and warp collectives (sim_warp.c) ---- */
enum { CUDA_SIM_SHFL, CUDA_SIM_SHFL_UP, CUDA_SIM_SHFL_DOWN, CUDA_SIM_SHFL_XOR, CUDA_SIM_BALLOT, CUDA_SIM_SYNCWARP };
extern "C" {
void cuda_sim_barrier(int line);
unsigned long long cuda_sim_collective(int kind, int line, unsigned mask, unsigned long long bits, int lane, int width);
unsigned cuda_sim_activemask(void);
void cuda_sim_trap(const char *why, int line);
void *cuda_sim_dynamic_shared(void);
void cuda_sim_atomic_access(const volatile void *p, unsigned long long n_bytes);
}
#define CUDA_SIM_DYNAMIC_SHARED(type, name) type *const name = static_cast<type *>(cuda_sim_dynamic_shared())
#define __syncthreads() cuda_sim_barrier(__LINE__)

template <class T> CUDA_SIM_HOST inline unsigned long long cuda_sim_to_bits(T v) {
    static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
    unsigned long long bits = 0;
    __builtin_memcpy(&bits, &v, sizeof v);
    return bits;
}
template <class T> CUDA_SIM_HOST inline T cuda_sim_from_bits(unsigned long long bits) {
    T v;
    __builtin_memcpy(&v, &bits, sizeof v);
    return v;
}
template <class T>
CUDA_SIM_HOST inline T cuda_sim_shuffle(int kind, int line, unsigned mask, T v, int lane, int width = 32) {
    return cuda_sim_from_bits<T>(cuda_sim_collective(kind, line, mask, cuda_sim_to_bits(v), lane, width));
}
#define __shfl_sync(mask, v, ...) cuda_sim_shuffle(CUDA_SIM_SHFL, __LINE__, mask, v, __VA_ARGS__)
#define __shfl_up_sync(mask, v, ...) cuda_sim_shuffle(CUDA_SIM_SHFL_UP, __LINE__, mask, v, __VA_ARGS__)
#define __shfl_down_sync(mask, v, ...) cuda_sim_shuffle(CUDA_SIM_SHFL_DOWN, __LINE__, mask, v, __VA_ARGS__)
#define __shfl_xor_sync(mask, v, ...) cuda_sim_shuffle(CUDA_SIM_SHFL_XOR, __LINE__, mask, v, __VA_ARGS__)
struct cuda_sim_at {
    int line;
    CUDA_SIM_HOST void syncwarp(unsigned mask = 0xffffffffu) const {
        cuda_sim_collective(CUDA_SIM_SYNCWARP, line, mask, 0, 0, 32);
    }
};
#define __syncwarp(...) cuda_sim_at{__LINE__}.syncwarp(__VA_ARGS__)
#define __ballot_sync(mask, p) ((unsigned)cuda_sim_collective(CUDA_SIM_BALLOT, __LINE__, mask, (p) ? 1 : 0, 0, 32))
#define __any_sync(mask, p) (__ballot_sync(mask, p) != 0)
#define __all_sync(mask, p) (__ballot_sync(mask, p) == (unsigned)(mask))
#define __activemask() cuda_sim_activemask()
#define __trap() cuda_sim_trap("__trap", __LINE__)
inline void __threadfence() {}
inline void __threadfence_block() {}

/* ---- atomics: threads switch only at calls, so plain code is atomic; the access itself is checked as such ---- */
template <class T, class F> CUDA_SIM_HOST inline T cuda_sim_atomic(T *p, F next) {
    cuda_sim_atomic_access(p, sizeof(T));
    T old = *p;
    *p = next(old);
    return old;
}
#define CUDA_SIM_ATOMIC(T)                                                                                             \
    CUDA_SIM_HOST inline T atomicAdd(T *p, T v) {                                                                      \
        return cuda_sim_atomic(p, [=](T a) { return static_cast<T>(a + v); });                                         \
    }                                                                                                                  \
    CUDA_SIM_HOST inline T atomicExch(T *p, T v) {                                                                     \
        return cuda_sim_atomic(p, [=](T) { return v; });                                                               \
    }
#define CUDA_SIM_ATOMIC_INT(T)                                                                                         \
    CUDA_SIM_ATOMIC(T)                                                                                                 \
    CUDA_SIM_HOST inline T atomicMin(T *p, T v) {                                                                      \
        return cuda_sim_atomic(p, [=](T a) { return a < v ? a : v; });                                                 \
    }                                                                                                                  \
    CUDA_SIM_HOST inline T atomicMax(T *p, T v) {                                                                      \
        return cuda_sim_atomic(p, [=](T a) { return a > v ? a : v; });                                                 \
    }                                                                                                                  \
    CUDA_SIM_HOST inline T atomicAnd(T *p, T v) {                                                                      \
        return cuda_sim_atomic(p, [=](T a) { return static_cast<T>(a & v); });                                         \
    }                                                                                                                  \
    CUDA_SIM_HOST inline T atomicOr(T *p, T v) {                                                                       \
        return cuda_sim_atomic(p, [=](T a) { return static_cast<T>(a | v); });                                         \
    }                                                                                                                  \
    CUDA_SIM_HOST inline T atomicCAS(T *p, T want, T v) {                                                              \
        return cuda_sim_atomic(p, [=](T a) { return a == want ? v : a; });                                             \
    }
CUDA_SIM_ATOMIC(float)
CUDA_SIM_ATOMIC(double)
CUDA_SIM_ATOMIC_INT(int)
CUDA_SIM_ATOMIC_INT(unsigned)
CUDA_SIM_ATOMIC_INT(unsigned long long)

/* ---- reads past the caches, bits, and the C library's arithmetic ---- */
template <class T> inline T __ldg(const T *p) { return *p; }
template <class T> inline T __ldcg(const T *p) { return *p; }
template <class T> inline T __ldcs(const T *p) { return *p; }
template <class T> inline void __stcs(T *p, T v) { *p = v; }
inline int __float_as_int(float v) { return cuda_sim_from_bits<int>(cuda_sim_to_bits(v)); }
inline float __int_as_float(int v) { return cuda_sim_from_bits<float>(cuda_sim_to_bits(v)); }
inline float __uint_as_float(unsigned v) { return cuda_sim_from_bits<float>(cuda_sim_to_bits(v)); }
inline long long __double_as_longlong(double v) { return cuda_sim_from_bits<long long>(cuda_sim_to_bits(v)); }
inline double __longlong_as_double(long long v) { return cuda_sim_from_bits<double>(cuda_sim_to_bits(v)); }
inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __clz(int v) { return v ? __builtin_clz((unsigned)v) : 32; }
inline int __ffs(int v) { return __builtin_ffs(v); }

extern "C" {
#define CUDA_SIM_MATH1(name)                                                                                           \
    double name(double) noexcept;                                                                                      \
    float name##f(float) noexcept;
#define CUDA_SIM_MATH2(name)                                                                                           \
    double name(double, double) noexcept;                                                                              \
    float name##f(float, float) noexcept;
CUDA_SIM_MATH1(exp)
CUDA_SIM_MATH1(expm1)
CUDA_SIM_MATH1(log) CUDA_SIM_MATH1(log1p) CUDA_SIM_MATH1(sqrt) CUDA_SIM_MATH1(floor) CUDA_SIM_MATH1(ceil)
    CUDA_SIM_MATH1(rint) CUDA_SIM_MATH1(trunc) CUDA_SIM_MATH1(fabs) CUDA_SIM_MATH1(sin) CUDA_SIM_MATH1(cos)
        CUDA_SIM_MATH1(tan) CUDA_SIM_MATH1(asin) CUDA_SIM_MATH1(acos) CUDA_SIM_MATH1(atan) CUDA_SIM_MATH1(sinh)
            CUDA_SIM_MATH1(cosh) CUDA_SIM_MATH1(tanh) CUDA_SIM_MATH1(erf) CUDA_SIM_MATH1(exp2) CUDA_SIM_MATH1(log2)
                CUDA_SIM_MATH2(pow) CUDA_SIM_MATH2(atan2) CUDA_SIM_MATH2(hypot) CUDA_SIM_MATH2(fmod) CUDA_SIM_MATH2(fmin) CUDA_SIM_MATH2(fmax)
                    CUDA_SIM_MATH2(copysign)
}

/* ---- launching ---- */
/* From C++ in the same text: cuda_sim_launch(grid, block, shared_bytes, kernel, arguments...).  Host buffers must have
 * been made with sim_buffer_new.  False: the device found a fault. */
extern "C" bool cuda_sim_run(uint3 grid, uint3 block, unsigned long long shared_bytes, void (*entry)(void *),
                             void *user);
template <class F> CUDA_SIM_HOST void cuda_sim_entry(void *user) { (*static_cast<F *>(user))(); }
template <class... A, class... B>
CUDA_SIM_HOST bool cuda_sim_launch(dim3 grid, dim3 block, unsigned long long shared_bytes, void (*fn)(A...),
                                   B... args) {
    auto call = [=]() CUDA_SIM_HOST { fn(static_cast<A>(args)...); };
    return cuda_sim_run(uint3{grid.x, grid.y, grid.z}, uint3{block.x, block.y, block.z}, shared_bytes,
                        cuda_sim_entry<decltype(call)>, &call);
}
/* From C: sim_build.c appends one CUDA_SIM_EXPORT for each __global__ function; arguments as for cuLaunchKernel. */
template <unsigned long... I> struct cuda_sim_indices {};
template <unsigned long N, unsigned long... I> struct cuda_sim_count : cuda_sim_count<N - 1, N - 1, I...> {};
template <unsigned long... I> struct cuda_sim_count<0, I...> {
    using type = cuda_sim_indices<I...>;
};
template <class... A, unsigned long... I>
CUDA_SIM_HOST void cuda_sim_apply(void (*fn)(A...), void **args, cuda_sim_indices<I...>) {
    fn(*static_cast<A *>(args[I])...);
}
template <class... A> constexpr int cuda_sim_arity(void (*)(A...)) { return (int)sizeof...(A); }
template <class... A> CUDA_SIM_HOST void cuda_sim_call(void (*fn)(A...), void **args) {
    cuda_sim_apply(fn, args, typename cuda_sim_count<sizeof...(A)>::type{});
}
#define CUDA_SIM_EXPORT(kernel)                                                                                        \
    extern "C" CUDA_SIM_HOST __attribute__((visibility("default"), used)) void cuda_sim_call_##kernel(void *args) {    \
        cuda_sim_call(&kernel, static_cast<void **>(args));                                                            \
    }                                                                                                                  \
    extern "C" __attribute__((visibility("default"), used)) const int cuda_sim_arity_##kernel = cuda_sim_arity(&kernel);
/* Where static shared memory and constants lie; NULL when the text has none. */
extern "C" {
extern char __start_cuda_sim_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_cuda_sim_shared[] __attribute__((weak, visibility("hidden")));
extern char __start_cuda_sim_constant[] __attribute__((weak, visibility("hidden")));
extern char __stop_cuda_sim_constant[] __attribute__((weak, visibility("hidden")));
CUDA_SIM_HOST __attribute__((visibility("default"), used, weak)) void cuda_sim_sections(char **ends) {
    ends[0] = __start_cuda_sim_shared;
    ends[1] = __stop_cuda_sim_shared;
    ends[2] = __start_cuda_sim_constant;
    ends[3] = __stop_cuda_sim_constant;
}
}
#endif
