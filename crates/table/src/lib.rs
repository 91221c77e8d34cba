//! brisk-table
