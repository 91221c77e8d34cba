//! The crate from outside: one binary, a module a feature.

mod source;
