//! Guides: what the parts of this crate do together.

pub mod operations {
    #![doc = include_str!("../docs/operations.md")]

    #[allow(unused_imports, reason = "links of the text")]
    use crate::*;
}

pub mod graphs {
    #![doc = include_str!("../docs/graphs.md")]

    #[allow(unused_imports, reason = "links of the text")]
    use crate::*;
}
