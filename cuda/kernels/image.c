// SPDX-License-Identifier: MIT
//
// Takes the file that nvcc made into the plug-in. The build says where it lies (TIDE_CUDA_IMAGE_FILE) and names it as
// what this file depends on.
#include "cuda/kernels/image.h"

__asm__(".pushsection .rodata\n"
        ".balign 16\n"
        ".hidden tide_cuda_image, tide_cuda_image_end\n"
        ".globl tide_cuda_image, tide_cuda_image_end\n"
        "tide_cuda_image:\n"
        ".incbin \"" TIDE_CUDA_IMAGE_FILE "\"\n"
        "tide_cuda_image_end:\n"
        ".popsection\n");
