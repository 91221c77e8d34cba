//! Recording, planning, and running on both executors.
//!
//! `BRISK_TEST_GPU=off|auto|require` controls the use of GPUs; see `gpu.rs`.

mod gpu;
mod mistakes;
mod mlp;
mod random;
mod random_program;
mod toy;

mod planning;
mod recompute;
mod recording;
mod rewrites;
mod selection;

mod bindings;
mod cpu_run;
mod cpu_threads;
mod memory;
mod memory_limit;

mod faults;
mod gpu_refusals;
mod gpu_run;
mod gpu_transfer;
mod host_steps;
mod side_by_side;

mod uploads;

mod pipeline_cache;
mod profile;
