//! Guides: what the crates do together.

pub mod several_crates {
    #![doc = include_str!("../docs/several_crates.md")]
}
