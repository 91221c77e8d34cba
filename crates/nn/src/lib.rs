//! brisk-nn
