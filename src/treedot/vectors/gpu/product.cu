// Dense vectors with the paper's shuffled γ-product on a GPU: one block of threads per tree.
//
// A vector has D elements: thread t holds elements t, t + Q, … t + 15 Q. The row of a node is the composition of its
// children so far. Each thread accesses only its own elements of rows, so rows are in global memory, where the
// cache keeps them. A child is copied to shared memory, from which each thread gathers its elements.
// The operations of a tree come from treedot.vectors.gpu.operations; treedot.vectors.dense.product explains the formulas.
//
// Compiled after block.cu, with -DD.

#define LABEL_BOUND 8.f

extern "C" __global__ void __launch_bounds__(Q, 1024 / Q)
encode(const int4* __restrict__ operations, const long long* __restrict__ offsets, int n_trees, int* next,
       const float* __restrict__ plain, const float* __restrict__ left, const float* __restrict__ right,
       const u32* __restrict__ shuffles, float* all_rows, int rows_of_a_block,
       const float* __restrict__ root_decay_, int normalize, float* __restrict__ out, int* not_finite) {
  extern __shared__ float children[];  // two children: one is read while the next is written
  __shared__ int which, exponents[MOST_ROWS];
  __shared__ float bounds[MOST_ROWS], of_warp[WARPS];
  __shared__ double squares[WARPS];
  const int t = threadIdx.x;
  const float root_decay = *root_decay_;
  float* rows = all_rows + (size_t)blockIdx.x * rows_of_a_block * D;
  for (;;) {
    if (t == 0) which = atomicAdd(next, 1);
    __syncthreads();
    const int tree = which;
    if (tree >= n_trees) return;
    float total[16];
    int total_exponent = NO_VALUE;
#pragma unroll
    for (int k = 0; k < 16; k++) total[k] = 0.f;
    const int n_nodes = int(offsets[tree + 1] - offsets[tree]);
    const int n_operations = n_nodes > 1 ? n_nodes : 0;  // at most; the operation of the root is the last
    for (int o = 0; o < n_operations; o++) {
      const int4 words = __ldg(operations + offsets[tree] + o);
      const u32 kind = words.x & 255, row = (words.x >> 8) & 255, of_child = (words.x >> 16) & 255;
      const u32 shuffle = u32(words.x) >> 24;
      const bool first = kind % 2 == 0;
      // All threads read exponents and bounds before the barrier, and write the same values after it.
      int grown = 0, exponent = exponents[row];
      float bound = bounds[row], largest = LABEL_BOUND;
      float* child = children + (o % 2) * D;
      const size_t label = (size_t)(kind == ROOT ? words.y : words.z) * D + t;
      if (kind <= LEAF_NEXT) {
#pragma unroll
        for (int k = 0; k < 16; k++) child[t + Q * k] = __ldg(plain + label + Q * k);
      } else {
        float s[16];
        int its_exponent = 0;
        float its_bound = LABEL_BOUND;
        if (kind == TAG_FIRST || kind == TAG_NEXT || kind == ROOT_TAG) {
          const size_t leaf = (size_t)words.w * D + t;
#pragma unroll
          for (int k = 0; k < 16; k++) s[k] = __ldg(right + leaf + Q * k);
        } else {
          const u32 from = kind == NODE_NEXT ? of_child : row;
          its_exponent = exponents[from];
          its_bound = bounds[from];
#pragma unroll
          for (int k = 0; k < 16; k++) s[k] = rows[from * D + t + Q * k];
          if (its_bound * LABEL_BOUND > LARGE) its_exponent = rescale(s, its_exponent, its_bound, of_warp, t);
        }
        float share = 1.f;
        if (its_exponent <= total_exponent) share = power(its_exponent - total_exponent);
        else {
          const float shrink = power(total_exponent - its_exponent);
#pragma unroll
          for (int k = 0; k < 16; k++) total[k] *= shrink;
          total_exponent = its_exponent;
        }
        float a = 1.f, b = root_decay;
        if (its_exponent >= 0) {
          a = power(-its_exponent);
          grown = its_exponent;
        } else b *= power(its_exponent);
        largest = LABEL_BOUND * (a + b * its_bound);
#pragma unroll
        for (int k = 0; k < 16; k++) {
          s[k] *= __ldg(left + label + Q * k);
          total[k] += share * s[k];
        }
        if (kind == ROOT || kind == ROOT_TAG) break;
#pragma unroll
        for (int k = 0; k < 16; k++) child[t + Q * k] = fmaf(b, s[k], a * __ldg(plain + label + Q * k));
      }
      __syncthreads();
      float v[16];
      const u32* places = shuffles + (size_t)shuffle * (D / 2) + t;
#pragma unroll
      for (int i = 0; i < 8; i++) {
        const u32 two = __ldg(places + Q * i);
        v[2 * i] = child[two & 0xffff];
        v[2 * i + 1] = child[two >> 16];
      }
      if (first) {
        exponent = grown;
        bound = largest;
      } else {
#pragma unroll
        for (int k = 0; k < 16; k++) v[k] *= rows[row * D + t + Q * k];
        exponent += grown;
        bound *= largest;
        if (bound > LARGE || exponent != 0) exponent = rescale(v, exponent, bound, of_warp, t);
      }
      exponents[row] = exponent;
      bounds[row] = bound;
#pragma unroll
      for (int k = 0; k < 16; k++) rows[row * D + t + Q * k] = v[k];
    }
    const float factor = normalize ? one_over_length(total, squares, t) : rsqrtf(float(D));
#pragma unroll
    for (int k = 0; k < 16; k++)
      write_element(total[k], factor, total_exponent, normalize, out + (size_t)tree * D + t + Q * k, not_finite);
    __syncthreads();
  }
}
