//! Guides: what the parts of this crate do together.

pub mod models {
    #![doc = include_str!("../docs/models.md")]

    #[allow(unused_imports, reason = "links of the text")]
    use crate::*;
}

pub mod rows {
    #![doc = include_str!("../docs/rows.md")]

    #[allow(unused_imports, reason = "links of the text")]
    use crate::*;
}

pub mod runs {
    #![doc = include_str!("../docs/runs.md")]

    #[allow(unused_imports, reason = "links of the text")]
    use crate::*;
}

pub mod data_parallel {
    #![doc = include_str!("../docs/data_parallel.md")]

    #[allow(unused_imports, reason = "links of the text")]
    use crate::*;
}
