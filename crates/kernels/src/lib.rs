//! brisk-kernels
