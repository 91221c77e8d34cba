use brisk_vision::Mixing;
use clap::Args;

use brisk_examples::command_line::value::positive;

/// How training images are mixed with others.
#[derive(Debug, Clone, Copy, Args)]
#[group(skip)]
pub struct MixingOptions {
    /// Replace a rectangle of each training image with one from another image; the larger ALPHA, the closer its area is to half
    /// of the image. The paper uses 1
    #[arg(long, value_name = "ALPHA", help_heading = "Training", value_parser = positive(1000.0), conflicts_with = "mixup")]
    cutmix: Option<f64>,
    /// Blend each training image with another; the larger ALPHA, the closer the blend is to equal parts. The paper uses 0.2 for
    /// photographs, and 1 for CIFAR
    #[arg(long, value_name = "ALPHA", help_heading = "Training", value_parser = positive(1000.0))]
    mixup: Option<f64>,
}

impl MixingOptions {
    /// The mixing that the options select; `None` if images are not mixed.
    pub fn mixing(self) -> Option<Mixing> {
        let cutmix = self.cutmix.map(|alpha| Mixing::CutMix { alpha: alpha as f32 });
        cutmix.or(self.mixup.map(|alpha| Mixing::Mixup { alpha: alpha as f32 }))
    }
}
