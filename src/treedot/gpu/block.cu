// What the kernels of all compositions share: one block of Q threads per tree, sixteen elements for each thread.
//
// It stands before the other file when that is compiled, with -DD.

#define Q (D / 16)
#define WARPS (Q / 32)
#define MOST_ROWS 64
#define LARGE 288230376151711744.f  // 2^58
#define NO_VALUE (-(1 << 28))

typedef unsigned short u16;
typedef unsigned int u32;

enum Kind { LEAF_FIRST, LEAF_NEXT, TAG_FIRST, TAG_NEXT, NODE_FIRST, NODE_NEXT, ROOT, ROOT_TAG };

__device__ __forceinline__ float power(int exponent) { return ldexpf(1.f, max(exponent, -1000)); }

// Bring values to a magnitude of about 1; give what is their largest then, and the exponent taken out.
__device__ __forceinline__ int rescale(float (&v)[16], float& bound, float* of_warp, int t) {
  float top = 0.f;
#pragma unroll
  for (int k = 0; k < 16; k++) top = fmaxf(top, fabsf(v[k]));
  for (int s = 16; s; s >>= 1) top = fmaxf(top, __shfl_xor_sync(~0u, top, s));
  __syncthreads();  // the last largest ones have been read
  if ((t & 31) == 0) of_warp[t >> 5] = top;
  __syncthreads();
  top = 0.f;
  for (int i = 0; i < WARPS; i++) top = fmaxf(top, of_warp[i]);
  if (top == 0.f) {
    bound = 0.f;
    return NO_VALUE;
  }
  int exponent;
  const float fraction = frexpf(top, &exponent);
  if (-20 < exponent && exponent <= 20) {
    bound = top;
    return 0;
  }
  const float factor = ldexpf(1.f, -exponent);
#pragma unroll
  for (int k = 0; k < 16; k++) v[k] *= factor;
  bound = fraction;
  return exponent;
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
