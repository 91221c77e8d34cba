//! Guides: what the parts of this crate do together.

pub mod images {
    #![doc = include_str!("../docs/images.md")]

    #[allow(unused_imports, reason = "links of the text")]
    use crate::*;
}

pub mod mixed_precision {
    #![doc = include_str!("../docs/mixed_precision.md")]

    #[allow(unused_imports, reason = "links of the text")]
    use crate::*;
}
