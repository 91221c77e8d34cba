//! The plain-Rust twins, one file a kernel, under the kernel's name.
//!
//! Work is cut by shape alone, never by the number of threads, so that a result has the same bits on any pool.

pub(crate) mod accumulate_batches;
pub(crate) mod activation;
pub(crate) mod adam;
pub(crate) mod add;
pub(crate) mod add_to;
pub(crate) mod advance;
pub(crate) mod avg_pool2d;
pub(crate) mod batch_norm;
pub(crate) mod batch_norm_grad;
pub(crate) mod batch_rows;
pub(crate) mod bce_with_logits;
pub(crate) mod blocks;
pub(crate) mod cast;
pub(crate) mod column_sum;
pub(crate) mod concat_columns;
pub(crate) mod conv2d;
pub(crate) mod conv2d_grad_input;
pub(crate) mod conv2d_grad_weight;
pub(crate) mod cross_entropy;
pub(crate) mod embedding;
pub(crate) mod first_non_finite;
mod float;
pub(crate) mod gather_categories;
pub(crate) mod gather_rows;
pub(crate) mod gemm;
pub(crate) mod matmul;
pub(crate) mod matmul_stored;
mod matmul_vector;
pub(crate) mod max_pool2d;
pub(crate) mod mse_loss;
pub(crate) mod multiply;
pub(crate) mod muon;
pub(crate) mod newton_schulz;
pub(crate) mod parameter_groups;
mod patches;
pub(crate) mod roc_auc;
mod room;
mod rows;
pub(crate) mod runs;
pub(crate) mod sgd;
pub(crate) mod share;
pub(crate) mod shift_columns;
mod skip;
pub(crate) mod softmax;
pub(crate) mod store_rows;
mod vectorised;
mod weighted_sums;

pub(crate) mod half;
pub(crate) mod layer_norm;

pub(crate) mod reduce;

pub(crate) mod clip;

pub(crate) mod grad_scaler;

pub(crate) mod elementwise;
pub(crate) mod ema;

pub(crate) mod dropout;

pub(crate) mod batched_matmul;

pub(crate) mod correct;
