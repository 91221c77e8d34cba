//! brisk-loader
