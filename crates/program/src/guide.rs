//! Guides: what the parts of this crate do together.

pub mod replays {
    #![doc = include_str!("../docs/replays.md")]

    #[allow(unused_imports, reason = "links of the text")]
    use crate::*;
}

pub mod devices {
    #![doc = include_str!("../docs/devices.md")]

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

    #[allow(unused_imports, reason = "links of the text")]
    use crate::*;
}
