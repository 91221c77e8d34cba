//! brisk-tensor
