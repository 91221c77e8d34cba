//! Choosing, gathering and storing the rows of a batch.

pub(crate) mod advance;
pub(crate) mod advance_cpu;
pub(crate) mod batch_rows;
pub(crate) mod batch_rows_cpu;
pub(crate) mod concat_columns;
pub(crate) mod concat_columns_cpu;
pub(crate) mod gather_categories;
pub(crate) mod gather_categories_cpu;
pub(crate) mod gather_rows;
pub(crate) mod gather_rows_cpu;
pub(crate) mod shift_columns;
pub(crate) mod shift_columns_cpu;
pub(crate) mod store_rows;
pub(crate) mod store_rows_cpu;
