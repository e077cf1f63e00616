// The functions that the kernels of all compositions share: one block of Q threads per tree, sixteen elements per thread.
//
// The other file is appended to this one before it is compiled, with -DD.

#define Q (D / 16)
#define WARPS (Q / 32)
#define MOST_ROWS 64
#define LARGE 288230376151711744.f  // 2^58
#define NO_VALUE (-(1 << 28))
#define LARGEST_POWER 120  // a power of two that float32 can represent

typedef unsigned short u16;
typedef unsigned int u32;

enum Kind { LEAF_FIRST, LEAF_NEXT, TAG_FIRST, TAG_NEXT, NODE_FIRST, NODE_NEXT, ROOT, ROOT_TAG };

__device__ __forceinline__ float power(int exponent) { return ldexpf(1.f, max(exponent, -1000)); }

// The bits of magnitudes have the same order as the magnitudes, with NaN last; fmaxf would ignore NaN.
__device__ __forceinline__ u32 magnitude(float x) { return __float_as_uint(x) & 0x7fffffffu; }

// Scale values over 2^exponent to a magnitude of about 1; set bound to the largest, and return the new exponent.
// Values that are not finite stay unchanged.
__device__ __forceinline__ int rescale(float (&v)[16], int exponent, float& bound, float* of_warp, int t) {
  u32 largest = 0;
#pragma unroll
  for (int k = 0; k < 16; k++) largest = max(largest, magnitude(v[k]));
  for (int s = 16; s; s >>= 1) largest = max(largest, __shfl_xor_sync(~0u, largest, s));
  __syncthreads();  // all threads have read of_warp of the previous call
  if ((t & 31) == 0) of_warp[t >> 5] = __uint_as_float(largest);
  __syncthreads();
  largest = 0;
  for (int i = 0; i < WARPS; i++) largest = max(largest, magnitude(of_warp[i]));
  const float top = __uint_as_float(largest);
  if (top == 0.f) {
    bound = 0.f;
    return NO_VALUE;  // zero, for any exponent
  }
  bound = top;
  if (!isfinite(top)) return exponent;
  int grown;
  const float fraction = frexpf(top, &grown);
  if (-20 < grown && grown <= 20) return exponent;
  // Two factors, since for denormal values one power may be too large for float32.
  const int first = min(-grown, LARGEST_POWER);
  const float factor = ldexpf(1.f, first), rest = ldexpf(1.f, -grown - first);
#pragma unroll
  for (int k = 0; k < 16; k++) v[k] = v[k] * factor * rest;
  bound = fraction;
  return exponent + grown;
}

// Write an element of a vector: normalised by the factor, or scaled by 2^exponent. Set not_finite if it is not finite.
__device__ __forceinline__ void write_element(float x, float factor, int exponent, int normalize, float* out, int* not_finite) {
  x *= factor;
  if (!normalize) x = exponent == NO_VALUE ? 0.f : ldexpf(x, exponent);
  if (!isfinite(x)) *not_finite = 1;
  *out = x;
}

// One over the length of a vector, or 0 if the length is 0.
__device__ __forceinline__ float one_over_length(const float (&total)[16], double* of_warp, int t) {
  double square = 0;
#pragma unroll
  for (int k = 0; k < 16; k++) square += double(total[k]) * double(total[k]);
  for (int s = 16; s; s >>= 1) square += __shfl_xor_sync(~0u, square, s);
  if ((t & 31) == 0) of_warp[t >> 5] = square;
  __syncthreads();
  square = 0;
  for (int i = 0; i < WARPS; i++) square += of_warp[i];
  return square > 0 ? float(1 / sqrt(square)) : 0.f;
}
