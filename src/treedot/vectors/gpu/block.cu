// What the kernels of all compositions share: one block of Q threads per tree, sixteen elements for each thread.
//
// It stands before the other file when that is compiled, with -DD.

#define Q (D / 16)
#define WARPS (Q / 32)
#define MOST_ROWS 64
#define LARGE 288230376151711744.f  // 2^58
#define NO_VALUE (-(1 << 28))
#define LARGEST_POWER 120  // of two, that float32 holds

typedef unsigned short u16;
typedef unsigned int u32;

enum Kind { LEAF_FIRST, LEAF_NEXT, TAG_FIRST, TAG_NEXT, NODE_FIRST, NODE_NEXT, ROOT, ROOT_TAG };

__device__ __forceinline__ float power(int exponent) { return ldexpf(1.f, max(exponent, -1000)); }

// Magnitudes are ordered as their bits are, and NaN comes last: fmaxf would take NaN for 0.
__device__ __forceinline__ u32 magnitude(float x) { return __float_as_uint(x) & 0x7fffffffu; }

// Bring values over 2^exponent to a magnitude of about 1; give what is their largest then, and their exponent.
// Values that are not finite stay as they are.
__device__ __forceinline__ int rescale(float (&v)[16], int exponent, float& bound, float* of_warp, int t) {
  u32 largest = 0;
#pragma unroll
  for (int k = 0; k < 16; k++) largest = max(largest, magnitude(v[k]));
  for (int s = 16; s; s >>= 1) largest = max(largest, __shfl_xor_sync(~0u, largest, s));
  __syncthreads();  // the last largest ones have been read
  if ((t & 31) == 0) of_warp[t >> 5] = __uint_as_float(largest);
  __syncthreads();
  largest = 0;
  for (int i = 0; i < WARPS; i++) largest = max(largest, magnitude(of_warp[i]));
  const float top = __uint_as_float(largest);
  if (top == 0.f) {
    bound = 0.f;
    return NO_VALUE;  // whatever the exponent was
  }
  bound = top;
  if (!isfinite(top)) return exponent;
  int grown;
  const float fraction = frexpf(top, &grown);
  if (-20 < grown && grown <= 20) return exponent;
  // Two factors where one power is too large for float32: the values are denormal.
  const int first = min(-grown, LARGEST_POWER);
  const float factor = ldexpf(1.f, first), rest = ldexpf(1.f, -grown - first);
#pragma unroll
  for (int k = 0; k < 16; k++) v[k] = v[k] * factor * rest;
  bound = fraction;
  return exponent + grown;
}

// Write an element of a vector: normalised by the factor or, by exponent, as it is. Note what is not finite.
__device__ __forceinline__ void write_element(float x, float factor, int exponent, int normalize, float* out, int* not_finite) {
  x *= factor;
  if (!normalize) x = exponent == NO_VALUE ? 0.f : ldexpf(x, exponent);
  if (!isfinite(x)) *not_finite = 1;
  *out = x;
}

// One over the length of a vector, 0 for none.
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
