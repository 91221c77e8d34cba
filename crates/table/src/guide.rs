//! Guides: what the parts of this crate do together.

pub mod tables {
    #![doc = include_str!("../docs/tables.md")]

    #[allow(unused_imports, reason = "links of the text")]
    use crate::*;
}

pub mod importing {
    #![doc = include_str!("../docs/importing.md")]

    #[allow(unused_imports, reason = "links of the text")]
    use crate::*;
}

#[cfg(feature = "remote")]
pub mod remote {
    #![doc = include_str!("../docs/remote.md")]

    #[allow(unused_imports, reason = "links of the text")]
    use crate::*;
}

pub mod measurements {
    #![doc = include_str!("../docs/measurements.md")]

    #[allow(unused_imports, reason = "links of the text")]
    use crate::*;
}
