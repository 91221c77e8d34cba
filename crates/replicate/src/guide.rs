//! Guides: what the parts of this crate do together.

pub mod processes {
    #![doc = include_str!("../docs/processes.md")]

    #[allow(unused_imports, reason = "links of the text")]
    use crate::*;
}

pub mod measurements {
    #![doc = include_str!("../docs/measurements.md")]

    #[allow(unused_imports, reason = "links of the text")]
    use crate::*;
}
