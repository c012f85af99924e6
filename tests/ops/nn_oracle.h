// SPDX-License-Identifier: MIT
//
// nn_oracle: the operators of neural networks once more, as plain as can be, in double, from the text of the ONNX
// operators page. Shares nothing with core/ops but the reading of attributes.
#ifndef TIDE_TESTS_OPS_NN_ORACLE_H
#define TIDE_TESTS_OPS_NN_ORACLE_H

#include "tests/ops/nn_case.h"

/// Each returns [numel of out[0]] doubles, freed by the caller with tide_host_free. `c` has been through nn_infer.
double *nn_oracle_conv(const nn_case *c);
double *nn_oracle_conv_transpose(const nn_case *c);
double *nn_oracle_pool(const nn_case *c);
double *nn_oracle_global_pool(const nn_case *c);
double *nn_oracle_matmul(const nn_case *c);
double *nn_oracle_gemm(const nn_case *c);
double *nn_oracle_batch_norm(const nn_case *c);
double *nn_oracle_instance_norm(const nn_case *c);
double *nn_oracle_layer_norm(const nn_case *c);
double *nn_oracle_lrn(const nn_case *c);
double *nn_oracle_softmax(const nn_case *c);
double *nn_oracle_activation(const nn_case *c);
double nn_oracle_act(const tide_activation *act, double v);

#endif
