//! Guides: what the parts of this crate do together.

pub mod gpu {
    #![doc = include_str!("../docs/gpu.md")]

    #[allow(unused_imports, reason = "links of the text")]
    use crate::*;
}

pub mod own_kernels {
    #![doc = include_str!("../docs/own_kernels.md")]

    #[allow(unused_imports, reason = "links of the text")]
    use crate::*;
}

pub mod measurements {
    #![doc = include_str!("../docs/measurements.md")]
}
