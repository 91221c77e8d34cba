//! Features of wgpu that are unsafe to use: experimental features, and shader modules without loop guards.
//!
//! By default, wgpu counts the iterations of every loop, because a driver's compiler may treat an infinite loop as undefined
//! behaviour. Without the counters, Mesa's compiler for NVIDIA Ampere estimates 9 % fewer cycles for products, 17 % for softmax,
//! 28 % for max pooling and 33 % for layer normalisation. The checks of indices and divisors cost little, and are kept.
//!
//! Without any checks, the products would take at most 4 % fewer cycles still. Kernels that index by data clamp in WGSL.

use crate::shader::module::{Module, Part};

impl Part {
    /// The part without wgpu's loop guards. A module is compiled without guards if all of its parts are marked like this, as
    /// those of this crate are.
    ///
    /// # Safety
    /// Every loop of the part must terminate, whatever buffers and parameters contain.
    ///
    /// # Examples
    /// ```
    /// use brisk_kernels::{Module, Part};
    ///
    /// let sum = "fn sum_to(n: u32) -> u32 { var s = 0u; for (var i = 0u; i < n; i += 1u) { s += i; } return s; }";
    /// let part = Part::new("sum", sum);
    /// assert!(Module::new([part.clone()]).has_loop_guards());
    /// // SAFETY: `i` grows by one, so the loop ends after at most 2^32 - 1 iterations.
    /// let part = unsafe { part.without_loop_guards() };
    /// assert!(!Module::new([part]).has_loop_guards());
    /// ```
    #[expect(unsafe_code, reason = "it is the caller who knows that the loops end")]
    pub unsafe fn without_loop_guards(self) -> Self {
        Self { loops_end: true, ..self }
    }
}

/// Compiles a module, without loop guards if its parts allow that.
pub(crate) fn create_shader_module(device: &wgpu::Device, label: &'static str, module: &Module) -> wgpu::ShaderModule {
    let descriptor =
        wgpu::ShaderModuleDescriptor { label: Some(label), source: wgpu::ShaderSource::Wgsl(module.source().into()) };
    if module.has_loop_guards() {
        return device.create_shader_module(descriptor);
    }
    let checks = wgpu::ShaderRuntimeChecks { force_loop_bounding: false, ..wgpu::ShaderRuntimeChecks::checked() };
    // SAFETY: only the guards of loops are left out, and each part's author guarantees that its loops terminate. The loops of
    // this crate count up to a size or at most to 2^32 - 1, or halve a number until it is 0; what they read from buffers can end
    // them earlier, but not later.
    #[expect(unsafe_code, reason = "wgpu cannot know that the loops of a module end")]
    unsafe {
        device.create_shader_module_trusted(descriptor, checks)
    }
}

/// The permission to use experimental features of wgpu, including cooperative matrices.
#[expect(unsafe_code, reason = "wgpu marks experimental features as unsafe")]
pub(crate) fn experimental_features() -> wgpu::ExperimentalFeatures {
    // SAFETY: this acknowledges that wgpu does not check everything that these features can do. Our modules observe what it
    // requires of its users: listed shapes, uniform control flow, loads and stores within the buffers.
    unsafe { wgpu::ExperimentalFeatures::enabled() }
}
