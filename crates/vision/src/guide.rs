//! Guides: what the parts of this crate do together.

pub mod buffers {
    #![doc = include_str!("../docs/buffers.md")]

    #[allow(unused_imports, reason = "links of the text")]
    use crate::*;
}

pub mod recipes {
    #![doc = include_str!("../docs/recipes.md")]

    #[allow(unused_imports, reason = "links of the text")]
    use crate::*;
}
