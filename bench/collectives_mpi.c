/* SPDX-License-Identifier: Apache-2.0 */
/* The twin of collectives_bench.cpp among processes: MPI_Allreduce in place, float, sum. Prints `ranks bytes microseconds` per size, the
   median of seven timings. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int sizes[] = {4096, 262144, 3276800, 26214400};
  for (int s = 0; s < 4; ++s) {
    const int bytes = sizes[s], repeats = bytes <= 4096 ? 500 : bytes <= 1048576 ? 60 : bytes <= 4194304 ? 15 : 5;
    float* data = aligned_alloc(64, (size_t)bytes);
    for (int i = 0; i < bytes / 4; ++i) data[i] = 0;
    double seconds[7];
    for (int t = 0; t < 7; ++t) {
      MPI_Barrier(MPI_COMM_WORLD);
      const double start = MPI_Wtime();
      for (int i = 0; i < repeats; ++i) MPI_Allreduce(MPI_IN_PLACE, data, bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      seconds[t] = (MPI_Wtime() - start) / repeats;
    }
    qsort(seconds, 7, sizeof(double), compare);
    if (rank == 0) printf("%d %d %.2f\n", size, bytes, seconds[3] * 1e6);
    free(data);
  }
  MPI_Finalize();
  return 0;
}
