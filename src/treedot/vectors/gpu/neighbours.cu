// Find the dot products of a tile that are among the best of their row or of their column so far.
//
// Hits are few, so they are appended to two lists: (row, column, value) of the products above their row's bound,
// and of those above their column's bound in the columns from `below` on. If a list is full, the caller ignores it.

#define ROWS 8

__device__ __forceinline__ void append(int* count, int capacity, int2* places, float* values, int row, int column,
                                       float value) {
  if (*(volatile int*)count >= capacity) return;
  const int at = atomicAdd(count, 1);
  if (at < capacity) {
    places[at] = make_int2(row, column);
    values[at] = value;
  }
}

extern "C" __global__ void above(const float4* __restrict__ tile, int rows, int columns, int below,
                                 const float* __restrict__ row_bound, const float* __restrict__ column_bound,
                                 int capacity, int* counts, int2* row_places, float* row_values,
                                 int2* column_places, float* column_values) {
  const int four = blockIdx.x * blockDim.x + threadIdx.x;  // columns
  if (4 * four >= columns) return;
  float bounds[4];
  for (int j = 0; j < 4; j++) {
    const int column = 4 * four + j;
    bounds[j] = column >= below ? column_bound[column - below] : __int_as_float(0x7f800000);
  }
  const int first = blockIdx.y * ROWS;
#pragma unroll
  for (int i = 0; i < ROWS; i++) {
    const int row = first + i;
    if (row >= rows) return;
    const float bound = row_bound[row];
    const float4 x = __ldcs(tile + (size_t)row * (columns / 4) + four);
    const float value[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
    for (int j = 0; j < 4; j++) {
      if (value[j] > bound) append(counts, capacity, row_places, row_values, row, 4 * four + j, value[j]);
      if (value[j] > bounds[j])
        append(counts + 1, capacity, column_places, column_values, row, 4 * four + j, value[j]);
    }
  }
}
