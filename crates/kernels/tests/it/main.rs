//! The tests of each kernel: its WGSL validates, its twin gives numbers computed by hand, the GPU gives the same as the twin, a
//! property holds, a gradient equals a finite difference, and results are bit-identical for any number of threads.
//!
//! `BRISK_TEST_GPU=off|auto|require` says what to do about GPUs; see `gpu.rs`.

mod close;
mod emulated;
mod gpu;
mod pipeline;
mod random;
mod rules;
mod run;
mod samples;

mod reserved_words;
mod translation;
mod wgsl;

mod activation;
mod advance;
mod arg_max;
mod augment_images;
mod avg_pool2d;
mod batch_norm;
mod batch_rows;
mod batched_matmul;
mod bce_with_logits;
mod cast;
mod clip;
mod column_sum;
mod concat_columns;
mod conv2d;
mod conv2d_coop;
mod coop;
mod correct;
mod cross_entropy;
mod cumulative_sum;
mod draws;
mod embedding;
mod expr;
mod f16_accumulation;
mod first_non_finite;
mod gather;
mod gather_categories;
mod gather_rows;
mod grad_scaler;
mod grouped_conv2d;
mod layer_norm;
mod map;
mod map_forms;
mod map_fusion;
mod map_in_place;
mod map_reduce;
mod map_samples;
mod matmul;
mod max_pool2d;
mod mix_rows;
mod mse_loss;
mod newton_schulz;
mod out_of_range;
mod reduce;
mod runs;
mod shift_columns;
mod skip_incomplete;
mod skip_weightless;
mod softmax;
mod store_rows;
mod update;

mod recorder;
mod sizes;
mod stored;
mod stored_products;
