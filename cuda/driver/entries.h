// SPDX-License-Identifier: MIT
//
// The entry points of the driver that the plug-in calls, one row each; XX(Name) stands for cuName. No include guard:
// the file that includes it defines XX.
// clang-format off
// what there is
XX(DeviceGetCount) XX(DeviceGet) XX(DeviceGetName) XX(DeviceTotalMem) XX(DeviceGetAttribute)
// contexts
XX(DevicePrimaryCtxRetain) XX(DevicePrimaryCtxRelease) XX(CtxPushCurrent) XX(CtxPopCurrent)
// memory
XX(MemGetInfo) XX(MemAlloc) XX(MemFree) XX(MemHostAlloc) XX(MemFreeHost)
XX(MemcpyHtoDAsync) XX(MemcpyDtoHAsync) XX(MemcpyDtoDAsync) XX(MemsetD8Async)
// streams and events
XX(StreamCreate) XX(StreamDestroy) XX(StreamSynchronize) XX(StreamWaitEvent) XX(LaunchHostFunc)
XX(EventCreate) XX(EventDestroy) XX(EventRecord) XX(EventQuery) XX(EventSynchronize)
// captures
XX(StreamBeginCapture) XX(StreamEndCapture) XX(StreamIsCapturing)
XX(GraphInstantiateWithFlags) XX(GraphLaunch) XX(GraphDestroy) XX(GraphExecDestroy)
// pools
XX(MemPoolCreate) XX(MemPoolDestroy) XX(MemPoolSetAttribute) XX(MemPoolGetAttribute) XX(MemPoolTrimTo)
XX(MemAllocFromPoolAsync) XX(MemFreeAsync)
// addresses first, memory later
XX(MemGetAllocationGranularity) XX(MemAddressReserve) XX(MemAddressFree) XX(MemCreate) XX(MemRelease)
XX(MemMap) XX(MemUnmap) XX(MemSetAccess)
// kernels
XX(LibraryLoadData) XX(LibraryUnload) XX(LibraryGetKernel) XX(LaunchKernel)
    // clang-format on
