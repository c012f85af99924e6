// SPDX-License-Identifier: MIT
//
// calls: the calls of the driver that take or give memory, one row each. No include guard: the file that includes it
// defines X.
//
//     X(name, sort, allocator, { reads the call's parameters: `p` are they, `c` is what is read })
//
//     name       as in cupti_driver_cbid.h and generated_cuda_meta.h: of the entry point that the driver exports
//     sort       what it does, and when it is read: enum call_sort of callbacks.c
//     allocator  name of it in the trace
//
// Not here, because nothing is taken from the device by them, or it is counted elsewhere:
//     cuMemAddressReserve, cuMemAddressFree   addresses without memory
//     cuMemPool*                              what pools reserve is told by records (records.c)
//     cuIpcOpenMemHandle, cuMemImport…        memory of another process, which has it in its own lane
//     the forms of CUDA 3.1 and before        their records show as unmatched
// Registered host memory (cuMemHostRegister) is the program's own, of malloc or mmap: its calls are known, so that
// their records are explained, and make no block.
// clang-format off

// plain memory of a device
X(cuMemAlloc_v2, CALL_ALLOC, "cuMemAlloc", { c->address = *p->dptr; c->bytes = p->bytesize; })
X(cuMemAllocPitch_v2, CALL_ALLOC, "cuMemAlloc", { c->address = *p->dptr; c->bytes = *p->pPitch * p->Height; c->asked_bytes = p->WidthInBytes * p->Height; })
X(cuMemAllocManaged, CALL_ALLOC, "cuMemAllocManaged", { c->address = *p->dptr; c->bytes = p->bytesize; })
X(cuMemFree_v2, CALL_FREE, NULL, { c->address = p->dptr; })

// page-locked host memory
X(cuMemHostAlloc, CALL_ALLOC_HOST, "cuMemHostAlloc", { c->address = (uintptr_t)*p->pp; c->bytes = p->bytesize; })
X(cuMemHostAlloc_v2, CALL_ALLOC_HOST, "cuMemHostAlloc", { c->address = (uintptr_t)*p->pp; c->bytes = p->bytesize; })
X(cuMemAllocHost_v2, CALL_ALLOC_HOST, "cuMemHostAlloc", { c->address = (uintptr_t)*p->pp; c->bytes = p->bytesize; })
X(cuMemFreeHost, CALL_FREE, NULL, { c->address = (uintptr_t)p->p; })
X(cuMemHostRegister_v2, CALL_NOTE_ALLOC, NULL, { c->address = (uintptr_t)p->p; c->bytes = p->bytesize; })
X(cuMemHostRegister, CALL_NOTE_ALLOC, NULL, { c->address = (uintptr_t)p->p; c->bytes = p->bytesize; })
X(cuMemHostUnregister, CALL_NOTE_FREE, NULL, { c->address = (uintptr_t)p->p; c->bytes = 1; })

// in the order of a stream
X(cuMemAllocAsync, CALL_ALLOC_ASYNC, "cuMemAllocAsync", { c->address = *p->dptr; c->bytes = p->bytesize; c->stream = p->hStream; })
X(cuMemAllocAsync_ptsz, CALL_ALLOC_ASYNC, "cuMemAllocAsync", { c->address = *p->dptr; c->bytes = p->bytesize; c->stream = p->hStream; c->per_thread = true; })
X(cuMemAllocFromPoolAsync, CALL_ALLOC_ASYNC, "cuMemAllocAsync", { c->address = *p->dptr; c->bytes = p->bytesize; c->stream = p->hStream; c->pool = (uintptr_t)p->pool; })
X(cuMemAllocFromPoolAsync_ptsz, CALL_ALLOC_ASYNC, "cuMemAllocAsync", { c->address = *p->dptr; c->bytes = p->bytesize; c->stream = p->hStream; c->pool = (uintptr_t)p->pool; c->per_thread = true; })
X(cuMemFreeAsync, CALL_FREE_ASYNC, NULL, { c->address = p->dptr; c->stream = p->hStream; })
X(cuMemFreeAsync_ptsz, CALL_FREE_ASYNC, NULL, { c->address = p->dptr; c->stream = p->hStream; c->per_thread = true; })
X(cuMemPoolCreate, CALL_POOL_CREATE, NULL, { c->pool = (uintptr_t)*p->pool; c->device = p->poolProps->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? p->poolProps->location.id : TIDE__CUPTI_HOST; })
X(cuMemPoolDestroy, CALL_POOL_DESTROY, NULL, { c->pool = (uintptr_t)p->pool; })

// physical memory and where it is mapped
X(cuMemCreate, CALL_CREATE, "cuMemCreate", { c->handle = *p->handle; c->bytes = p->size; c->device = p->prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? p->prop->location.id : TIDE__CUPTI_HOST; })
X(cuMemRetainAllocationHandle, CALL_RETAIN, NULL, { c->handle = *p->handle; c->address = (uintptr_t)p->addr; })
X(cuMemRelease, CALL_RELEASE, NULL, { c->handle = p->handle; })
X(cuMemMap, CALL_MAP, "cuMemMap", { c->handle = p->handle; c->address = p->ptr; c->bytes = p->size; })
X(cuMemUnmap, CALL_UNMAP, NULL, { c->address = p->ptr; c->bytes = p->size; })
X(cuMemSetAccess, CALL_NOTE_ALLOC, NULL, { c->address = p->ptr; c->bytes = p->size; })

// arrays: bytes as their sizes say; what the driver adds for its own order of texels is not known
X(cuArrayCreate_v2, CALL_ALLOC_ARRAY, "cuArrayCreate", { c->address = (uintptr_t)*p->pHandle; c->bytes = array_bytes(p->pAllocateArray->Width, p->pAllocateArray->Height, 0, p->pAllocateArray->Format, p->pAllocateArray->NumChannels, 1); })
X(cuArray3DCreate_v2, CALL_ALLOC_ARRAY, "cuArrayCreate", { c->address = (uintptr_t)*p->pHandle; c->bytes = array_bytes(p->pAllocateArray->Width, p->pAllocateArray->Height, p->pAllocateArray->Depth, p->pAllocateArray->Format, p->pAllocateArray->NumChannels, 1); })
X(cuMipmappedArrayCreate, CALL_ALLOC_ARRAY, "cuArrayCreate", { c->address = (uintptr_t)*p->pHandle; c->bytes = array_bytes(p->pMipmappedArrayDesc->Width, p->pMipmappedArrayDesc->Height, p->pMipmappedArrayDesc->Depth, p->pMipmappedArrayDesc->Format, p->pMipmappedArrayDesc->NumChannels, p->numMipmapLevels); })
X(cuArrayDestroy, CALL_FREE_ARRAY, NULL, { c->address = (uintptr_t)p->hArray; })
X(cuMipmappedArrayDestroy, CALL_FREE_ARRAY, NULL, { c->address = (uintptr_t)p->hMipmappedArray; })

// which context is the primary one of its device: pools' blocks go with that alone
X(cuDevicePrimaryCtxRetain, CALL_PRIMARY, NULL, { c->handle = (uintptr_t)*p->pctx; })

// captures: what is allocated in them is a node of a graph and no memory yet
X(cuStreamBeginCapture_v2, CALL_CAPTURE_BEGIN, NULL, { c->stream = p->hStream; })
X(cuStreamBeginCapture_v2_ptsz, CALL_CAPTURE_BEGIN, NULL, { c->stream = p->hStream; c->per_thread = true; })
X(cuStreamBeginCaptureToGraph, CALL_CAPTURE_BEGIN, NULL, { c->stream = p->hStream; })
X(cuStreamBeginCaptureToGraph_ptsz, CALL_CAPTURE_BEGIN, NULL, { c->stream = p->hStream; c->per_thread = true; })
X(cuStreamEndCapture, CALL_CAPTURE_END, NULL, { c->stream = p->hStream; })
X(cuStreamEndCapture_ptsz, CALL_CAPTURE_END, NULL, { c->stream = p->hStream; c->per_thread = true; })
// clang-format on
