//! Where floats stored in 16 bits are converted: in a kernel's own form ([`stored_form`]), or before and after an f32 kernel
//! ([`converted`]). How they are stored is in `storage`.

pub(crate) mod converted;
pub(crate) mod stored_form;
