// Dense vectors with the mixed product on a GPU: one block of threads per tree, one thread per column.
//
// A vector has D elements: 16 segments of Q. Thread t holds column t of all segments in registers, so the
// butterflies of a mixer need no exchange; its shuffle uses rows in shared memory. The operations of a
// tree come from treedot.vectors.gpu.operations; treedot.vectors.dense.mixed explains names and factors.
//
// Signs are bits, one word of 16 bits for each thread and label: bit k is the sign of the thread's element
// in segment k ("by column"), or of the element to which its butterfly k is written ("by target").
//
// Compiled after block.cu, with -DD, -DROTATION1, -DROTATION2, -DBLOCKS (on a multiprocessor), -DROWS_IN_GLOBAL, -DRESCALED.

#define ROW_BYTES (4 * D)
#define STAGED 32

// The signs of a label for thread t: as a parent and as a child, by M1's and by M2's targets.
struct Signs { u16 head1, child1, head2, child2; };

__device__ __forceinline__ void butterflies(float (&v)[16]) {
#pragma unroll
  for (int step = 1; step < 16; step <<= 1)
#pragma unroll
    for (int i = 0; i < 16; i++)
      if (!(i & step)) {
        const float a = v[i], b = v[i | step];
        v[i] = a + b;
        v[i | step] = a - b;
      }
}

// x with its sign changed if bit k of the word is set
__device__ __forceinline__ float flip(float x, u32 word, int k) {
  return __uint_as_float(__float_as_uint(x) ^ ((word << (31 - k)) & 0x80000000u));
}

// The targets of the sixteen butterflies of a thread: block numbers of ten bits, three in a word.
struct Places { u32 packed[6]; };

__device__ __forceinline__ Places places(const u16* target, int t) {
  Places p;
#pragma unroll
  for (int i = 0; i < 6; i++) {
    p.packed[i] = 0;
#pragma unroll
    for (int j = 0; j < 3; j++)
      if (3 * i + j < 16) p.packed[i] |= u32(target[(3 * i + j) * (Q / 16) + t / 16]) << (10 * j);
  }
  return p;
}

__device__ __forceinline__ u32 place(const Places& p, int k) {  // in bytes, without the lane
  const u32 word = p.packed[k / 3];
  const int field = k % 3;
  return (field == 0 ? word << 6 : word >> (10 * field - 6)) & 0xffc0u;
}

// Keep the compiler from unpacking places before the loop, where it has no registers for them.
__device__ __forceinline__ void keep_packed(Places& p) {
#pragma unroll
  for (int i = 0; i < 6; i++) asm volatile("" : "+r"(p.packed[i]));
}

#if ROWS_IN_GLOBAL
#define AT(row, offset) (*(float*)(rows + (size_t)(row) * ROW_BYTES + (offset)))
#elif D & (D - 1)
#define AT(row, offset) (*(float*)(rows + (row) * ROW_BYTES + (offset)))
#else  // a power of two: one instruction less
#define AT(row, offset) (*(float*)(rows + ((row) * ROW_BYTES | (offset))))
#endif

// The sum of all vectors of signs so far, as counters of minus signs: bit k of word j is bit j of element k's counter.
struct Counters { u32 word[4]; int added; };

__device__ __forceinline__ void count(Counters& c, u32 minus) {
#pragma unroll
  for (int j = 0; j < 4; j++) {
    const u32 carry = c.word[j] & minus;
    c.word[j] ^= minus;
    minus = carry;
  }
  c.added++;
}

// Add the sum of signs, times scale, to the total, and reset the counters.
__device__ __forceinline__ void empty(Counters& c, float scale, float (&total)[16]) {
  const float added = c.added;
#pragma unroll
  for (int k = 0; k < 4; k++) {  // elements k, k + 4, k + 8 and k + 12, four bits each
    u32 four = 0;
#pragma unroll
    for (int j = 0; j < 4; j++) four |= ((c.word[j] >> k) & 0x1111u) << j;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      // 2^23 + n is the number whose last bits are n: minus twice that, plus 2^24, is -2n
      const float n = __uint_as_float(0x4b000000u | ((four >> (4 * i)) & 15u));
      total[k + 4 * i] += scale * (fmaf(n, -2.f, 16777216.f) + added);
    }
  }
#pragma unroll
  for (int j = 0; j < 4; j++) c.word[j] = 0;
  c.added = 0;
}

// Add the sum of signs to a total over 2^exponent, after bringing a negative exponent to 0, and reset the counters.
__device__ __forceinline__ void empty_rescaled(Counters& c, float (&total)[16], int& exponent) {
  if (exponent < 0) {
    const float shrink = power(exponent);
#pragma unroll
    for (int k = 0; k < 16; k++) total[k] *= shrink;
    exponent = 0;
  }
  empty(c, power(-exponent), total);
}

extern "C" __global__ void __launch_bounds__(Q, BLOCKS)
encode(const int4* __restrict__ operations, const long long* __restrict__ offsets,
       const int* __restrict__ trees, int n_trees, int trees_of_a_block, int* next,
       const Signs* __restrict__ labels,
       const float4* __restrict__ tags, const u16* __restrict__ tag_signs,
       const u16* __restrict__ target1, const u16* __restrict__ target2, const u16* __restrict__ signs2,
       char* global_rows, int rows_of_a_block, const float* __restrict__ root_decay_, int normalize,
       float* __restrict__ out, int* not_finite) {
#if ROWS_IN_GLOBAL
  char* rows = global_rows + (size_t)blockIdx.x * rows_of_a_block * ROW_BYTES;
#else
  extern __shared__ __align__(16) char rows[];
#endif
  __shared__ int which, left;
  __shared__ int4 staged[STAGED];  // the next operations of the tree
  __shared__ double squares[WARPS];
#if RESCALED
  __shared__ int exponents[MOST_ROWS];
  __shared__ float bounds[MOST_ROWS], of_warp[WARPS];
#endif
  const int t = threadIdx.x;
  const float root_decay = *root_decay_;
  const u32 lane = 4 * (t & 15);
  const u32 column1 = 4 * ((t + ROTATION1) % Q), column2 = 4 * ((t + ROTATION2) % Q);
  Places to1 = places(target1, t), to2 = places(target2, t);
  const u32 sign2 = signs2[t];
  if (t == 0) left = trees_of_a_block;
  for (;;) {
    if (t == 0) which = left-- > 0 ? atomicAdd(next, 1) : n_trees;
    __syncthreads();
    if (which >= n_trees) return;
    const int tree = trees[which];
    float total[16];
    Counters minuses = {};
#if RESCALED
    int total_exponent = NO_VALUE;
#endif
#pragma unroll
    for (int k = 0; k < 16; k++) total[k] = 0.f;
    const int4* ahead = operations + offsets[tree];
    const int n_nodes = int(offsets[tree + 1] - offsets[tree]);
    const int n_operations = n_nodes > 1 ? n_nodes : 0;  // at most; the operation of the root is the last
    for (int o = 0; o < n_operations; o++) {
      if (o % STAGED == 0) {  // all threads have read the previous ones: each operation ends with a barrier
        if (t < STAGED && o + t < n_operations) staged[t] = __ldg(ahead + o + t);
        __syncthreads();
      }
      keep_packed(to1);
      keep_packed(to2);
      const int4 words = staged[o % STAGED];
      const u32 kind = words.x & 255, row = (words.x >> 8) & 255, of_child = (words.x >> 16) & 255;
      float v[16];
#if RESCALED
      int grown = 0;     // exponent of the current composition
      float bound = 1.f;
#endif
      if (kind == TAG_FIRST || kind == TAG_NEXT || kind == ROOT_TAG) {
        if (minuses.added == 15) {
#if RESCALED
          empty_rescaled(minuses, total, total_exponent);
#else
          empty(minuses, 1.f, total);
#endif
        }
        count(minuses, __ldg(tag_signs + (size_t)words.z * Q + t));
        if (kind == ROOT_TAG) break;
      }
      if (kind == NODE_FIRST || kind == NODE_NEXT || kind == ROOT) {
        const u32 from = kind == NODE_NEXT ? of_child : row;
#if RESCALED
        const int exponent = exponents[from];
        float share = 1.f;
        if (exponent <= total_exponent) share = power(exponent - total_exponent);
        else {
          const float shrink = power(total_exponent - exponent);
#pragma unroll
          for (int k = 0; k < 16; k++) total[k] *= shrink;
          total_exponent = exponent;
        }
#pragma unroll
        for (int k = 0; k < 16; k++) {
          v[k] = AT(from, 4 * Q * k + column2);
          total[k] += share * v[k];
        }
#else
#pragma unroll
        for (int k = 0; k < 16; k++) {
          v[k] = AT(from, 4 * Q * k + column2);
          total[k] += v[k];
        }
#endif
        if (kind == ROOT) break;
        u32 label = __ldg(&labels[(size_t)words.z * Q + t].child2), sign = sign2;
        float a = 1.f, b = root_decay * .25f;
#if RESCALED
        if (exponent >= 0) {
          a = power(-exponent);
          grown = exponent;
        } else b *= power(exponent);
        bound = a + 16.f * b * bounds[from];
#endif
        if (kind == NODE_FIRST) {
          const u32 head = __ldg(&labels[(size_t)words.y * Q + t].head2);
          label ^= head;
          sign ^= head;
        } else {
          a *= .25f;
          b *= .25f;
        }
        __syncthreads();
        butterflies(v);
#pragma unroll
        for (int k = 0; k < 16; k++) v[k] = fmaf(v[k], flip(b, sign, k), flip(a, label, k));
#if RESCALED
        if (kind == NODE_FIRST) {
          if (bound > LARGE || grown != 0) grown = rescale(v, grown, bound, of_warp, t);
          if (t == 0) {
            exponents[row] = grown;
            bounds[row] = bound;
          }
        }
#endif
#pragma unroll
        for (int k = 0; k < 16; k++) AT(from, place(to2, k) | lane) = v[k];
        if (kind == NODE_FIRST) {
          __syncthreads();
          continue;
        }
      } else if (kind == TAG_FIRST || kind == LEAF_FIRST) {
        u32 head = __ldg(&labels[(size_t)words.y * Q + t].head1);
        if (kind == LEAF_FIRST) {
          head ^= __ldg(&labels[(size_t)words.z * Q + t].child1);
#pragma unroll
          for (int k = 0; k < 16; k++) AT(row, place(to1, k) | lane) = flip(1.f, head, k);
        } else {
          const float4* tag = tags + (size_t)words.z * (4 * Q) + t;
#pragma unroll
          for (int i = 0; i < 4; i++) {
            const float4 g = __ldg(tag + i * Q);
            AT(row, place(to1, 4 * i) | lane) = g.x * flip(4.f, head, 4 * i);
            AT(row, place(to1, 4 * i + 1) | lane) = g.y * flip(4.f, head, 4 * i + 1);
            AT(row, place(to1, 4 * i + 2) | lane) = g.z * flip(4.f, head, 4 * i + 2);
            AT(row, place(to1, 4 * i + 3) | lane) = g.w * flip(4.f, head, 4 * i + 3);
          }
        }
#if RESCALED
        if (t == 0) {
          exponents[row] = 0;
          bounds[row] = kind == LEAF_FIRST ? 1.f : 1.f + 4.f * root_decay;
        }
#endif
        __syncthreads();
        continue;
      }
      // A later child: compose the row with it.
#if RESCALED
      if (kind == TAG_NEXT) bound = 1.f + 4.f * root_decay;
      grown += exponents[row];
      bound *= 4.f * bounds[row];
#endif
#pragma unroll
      for (int k = 0; k < 16; k++) v[k] = AT(row, 4 * Q * k + column1);
      __syncthreads();
      butterflies(v);
      if (kind == NODE_NEXT) {
#pragma unroll
        for (int k = 0; k < 16; k++) v[k] *= AT(of_child, place(to1, k) | lane);
      } else if (kind == TAG_NEXT) {
        const float4* tag = tags + (size_t)words.z * (4 * Q) + t;
#pragma unroll
        for (int i = 0; i < 4; i++) {
          const float4 g = __ldg(tag + i * Q);
          v[4 * i] *= g.x;
          v[4 * i + 1] *= g.y;
          v[4 * i + 2] *= g.z;
          v[4 * i + 3] *= g.w;
        }
      } else {
        const u32 label = __ldg(&labels[(size_t)words.z * Q + t].child1);
#pragma unroll
        for (int k = 0; k < 16; k++) v[k] *= flip(.25f, label, k);
      }
#if RESCALED
      if (bound > LARGE || grown != 0) grown = rescale(v, grown, bound, of_warp, t);
      if (t == 0) {
        exponents[row] = grown;
        bounds[row] = bound;
      }
#endif
#pragma unroll
      for (int k = 0; k < 16; k++) AT(row, place(to1, k) | lane) = v[k];
      __syncthreads();
    }
#if RESCALED
    if (minuses.added) empty_rescaled(minuses, total, total_exponent);
#else
    empty(minuses, 1.f, total);
#endif
    const float factor = normalize ? one_over_length(total, squares, t) : rsqrtf(float(D));
    float* vector = out + (size_t)tree * D;
#if !RESCALED
    const int total_exponent = 0;
#endif
#pragma unroll
    for (int k = 0; k < 16; k++)
      write_element(total[k], factor, total_exponent, normalize, vector + Q * k + column2 / 4, not_finite);
    __syncthreads();
  }
}

// Write the signs of labels by target, from words of sixteen signs in the order of elements.
extern "C" __global__ void lay_labels(const u16* __restrict__ head, const u16* __restrict__ child,
                                      const u16* __restrict__ target1, const u16* __restrict__ target2,
                                      Signs* labels) {
  const size_t label = blockIdx.x;
  const int t = threadIdx.x;
  const u16 *h = head + label * (D / 16), *c = child + label * (D / 16);
  u32 bits[4] = {0, 0, 0, 0};
#pragma unroll
  for (int k = 0; k < 16; k++) {
    const int at1 = target1[k * (Q / 16) + t / 16], at2 = target2[k * (Q / 16) + t / 16];
    bits[0] |= ((h[at1] >> (t & 15)) & 1u) << k;
    bits[1] |= ((c[at1] >> (t & 15)) & 1u) << k;
    bits[2] |= ((h[at2] >> (t & 15)) & 1u) << k;
    bits[3] |= ((c[at2] >> (t & 15)) & 1u) << k;
  }
  labels[label * Q + t] = {u16(bits[0]), u16(bits[1]), u16(bits[2]), u16(bits[3])};
}

// For pre-terminals, given as pairs of labels, write their signs by column, and M2(c + √λ s(c)) / 4 by M1's targets.
extern "C" __global__ void __launch_bounds__(Q)
make_tags(const longlong2* __restrict__ pairs, const u16* __restrict__ head, const u16* __restrict__ child,
          const Signs* __restrict__ labels, const u16* __restrict__ target1,
          const u16* __restrict__ target2, const u16* __restrict__ signs2,
          const float* __restrict__ root_decay, float4* tags, u16* tag_signs) {
  extern __shared__ float row[];
  const int t = threadIdx.x;
  const longlong2 pair = pairs[blockIdx.x];
  const u16 *h = head + pair.x * (D / 16), *c = child + pair.y * (D / 16);
  const int column = (t + ROTATION2) % Q;
  u32 minus = 0;
  float v[16];
#pragma unroll
  for (int k = 0; k < 16; k++) {
    const int at = (Q * k + column) / 16;
    minus |= (((h[at] ^ c[at]) >> (column & 15)) & 1u) << k;
    v[k] = flip(1.f, minus, k);
  }
  tag_signs[(size_t)blockIdx.x * Q + t] = minus;
  butterflies(v);
  const u32 label = labels[pair.x * Q + t].child2, sign = signs2[t];
#pragma unroll
  for (int k = 0; k < 16; k++)
    row[16 * target2[k * (Q / 16) + t / 16] + (t & 15)] =
        fmaf(v[k], flip(*root_decay * .0625f, sign, k), flip(.25f, label, k));
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 4; i++) {
    float g[4];
#pragma unroll
    for (int j = 0; j < 4; j++) g[j] = row[16 * target1[(4 * i + j) * (Q / 16) + t / 16] + (t & 15)];
    tags[(size_t)blockIdx.x * (4 * Q) + i * Q + t] = make_float4(g[0], g[1], g[2], g[3]);
  }
}
