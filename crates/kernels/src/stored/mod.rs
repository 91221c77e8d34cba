//! Kernels over floats stored in 16 bits: their own forms, or the f32 kernel between casts.

pub(crate) mod converted;
pub(crate) mod stored_form;
pub(crate) mod stored_types;
