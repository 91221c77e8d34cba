//! brisk-program
