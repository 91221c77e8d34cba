//! Guides: what the parts of this crate do together.

pub mod files {
    #![doc = include_str!("../docs/files.md")]

    #[allow(unused_imports, reason = "links of the text")]
    use crate::*;
}
