//! brisk-train
