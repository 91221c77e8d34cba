//! Guides: what the parts of this crate do together.

pub mod layers {
    #![doc = include_str!("../docs/layers.md")]

    #[allow(unused_imports, reason = "links of the text")]
    use crate::*;
}

pub mod optimizers {
    #![doc = include_str!("../docs/optimizers.md")]

    #[allow(unused_imports, reason = "links of the text")]
    use crate::*;
}

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
