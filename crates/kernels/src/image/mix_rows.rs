use super::mix_rows_cpu;
use crate::adapter::adapter::Adapter;
use crate::arg::Arg;
use crate::dtype::DType;
use crate::error::Error;
use crate::image::mixing::N_QUANTILES;
use crate::kernel::check_sizes::check_sizes;
use crate::kernel::kernel::{Kernel, Signature};
use crate::kernel::twin::TwinArgs;
use crate::random::philox::Philox;
use crate::run_state::ORDER_LEN;
use crate::shader::dispatch::Dispatch;
use crate::shader::module::part;
use crate::sizes::check_size;
use crate::storage::stored_types::Template;

const MIX_ROWS: Template = Template::new(&[part!("mix_rows.wgsl"), part!("../random/random_words.wgsl")], &[]);

/// Which row each row of a batch is mixed with, and the share of that row, for [`Mixing`](crate::Mixing).
///
/// `partners[i]` is drawn from the rows of the epoch, all equally likely, and the share from `quantiles`. The share of the
/// partner at line `l` and column `c` of row `i` is `lines[i, l] columns[i, c]`: 1 inside the rectangle of CutMix and 0 outside;
/// for Mixup the share that was drawn, in one line and one column. `shares[i]` is its mean over the row.
///
/// All of them follow from the seed, the epoch and the row: word `w` of Philox block `[row, epoch, 3, 0]` determines the partner
/// (`w = 0`), the quantile (1), and the centre of the rectangle (2, 3). All are in integers: every device draws the same.
///
/// # Shapes
/// `rows`, `partners`, `shares`: `[n]`; `order`: [`ORDER_LEN`], of which the number of rows and the epoch are read; `quantiles`:
/// [`N_QUANTILES`], of [`Mixing::quantiles`](crate::Mixing::quantiles); `lines`: `[n, height]`; `columns`:
/// `[n, width * n_channels]`. Without a rectangle, `lines` and `columns` are `[n, 1]`.
/// # Dtypes
/// `rows`, `order`, `quantiles`, `partners` u32; `shares`, `lines`, `columns` f32.
/// # Reference
/// `torchvision.transforms.v2`: `MixUp`, `CutMix`. They mix each image of a batch with its neighbour, all with the same share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MixRows {
    /// Number of rows.
    pub n: usize,
    /// Height, width and channels of the images in which rectangles are replaced; `None` for Mixup.
    pub cut: Option<[usize; 3]>,
    /// The seed of the run.
    pub seed: u64,
}

impl MixRows {
    /// Lines of a row, and columns of a line.
    fn lens(&self) -> [usize; 2] {
        self.cut.map_or([1, 1], |[height, width, n_channels]| [height, width.saturating_mul(n_channels)])
    }
}

impl Kernel for MixRows {
    fn signature(&self) -> Signature {
        let [n_lines, n_columns] = self.lens();
        let args = [
            Arg::read("rows", DType::U32, self.n),
            Arg::read("order", DType::U32, ORDER_LEN),
            Arg::read("quantiles", DType::U32, N_QUANTILES),
            Arg::write("partners", DType::U32, self.n),
            Arg::write("shares", DType::F32, self.n),
            Arg::write("lines", DType::F32, [self.n, n_lines]),
            Arg::write("columns", DType::F32, [self.n, n_columns]),
        ];
        Signature::new("mix_rows", args)
    }

    fn check(&self) -> Result<(), Error> {
        let [height, width, n_channels] = self.cut.unwrap_or([1; 3]);
        check_sizes(self, &[("n", self.n), ("height", height), ("width", width), ("n_channels", n_channels)])?;
        let n_pixels = height.saturating_mul(width);
        check_size(self.name(), ("height * width", n_pixels), n_pixels <= 1 << 24, "at most 2^24")
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let [height, width, n_channels] = self.cut.unwrap_or([1; 3]);
        let [key_low, key_high] = Philox::new(self.seed).key;
        let mix = Dispatch::elementwise(self.name(), "kernels.mix_rows", MIX_ROWS.module(&[]), self.n)?
            .param("n", self.n)
            .param("is_cut", u32::from(self.cut.is_some()))
            .param("height", height)
            .param("width", width)
            .param("n_channels", n_channels)
            .param("share_of_pixel", share_of_pixel(height, width))
            .param("key_low", key_low)
            .param("key_high", key_high);
        let written = ["partners", "shares", "lines", "columns"];
        Ok(vec![mix.bind(&self.args(), ["rows", "order", "quantiles"], written)?])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        let lens = self.lens();
        let (rows, order, quantiles) = (args.read("rows"), args.read("order"), args.read("quantiles"));
        let mixed = mix_rows_cpu::Mixed {
            partners: args.write("partners"),
            shares: args.write("shares"),
            lines: args.write("lines"),
            columns: args.write("columns"),
            lens,
        };
        mix_rows_cpu::run(self, rows, order, quantiles, mixed);
    }
}

/// The share of a pixel in the area of an image of at most 2²⁴ pixels. Areas are multiplied by it: WGSL's division is inexact.
#[expect(clippy::cast_precision_loss, reason = "24 bits are exact")]
pub(crate) fn share_of_pixel(height: usize, width: usize) -> f32 {
    1.0 / (height * width) as f32
}
