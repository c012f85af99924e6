// SPDX-License-Identifier: MIT
//
// The image of the kernels inside the plug-in, as nvcc made it (a fat binary).
#ifndef TIDE_CUDA_KERNELS_IMAGE_H
#define TIDE_CUDA_KERNELS_IMAGE_H

extern const unsigned char tide_cuda_image[], tide_cuda_image_end[];

#endif
