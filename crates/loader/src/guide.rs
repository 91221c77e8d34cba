//! Guides: what the parts of this crate do together.

pub mod batches {
    #![doc = include_str!("../docs/batches.md")]

    #[allow(unused_imports, reason = "links of the text")]
    use crate::*;
}

pub mod measurements {
    #![doc = include_str!("../docs/measurements.md")]

    #[allow(unused_imports, reason = "links of the text")]
    use crate::*;
}
