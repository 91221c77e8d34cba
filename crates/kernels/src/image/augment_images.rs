use super::augment_images_cpu;
use super::augmentation::{Border, Flip, ImageAugmentation};
use crate::adapter::adapter::Adapter;
use crate::arg::Arg;
use crate::conversion::stored_form::{StoredForm, by_stored_form, sharing};
use crate::dtype::DType;
use crate::error::{Error, check_supported};
use crate::expr::wgsl::VectorWidth;
use crate::kernel::check_sizes::check_sizes;
use crate::kernel::kernel::{Cost, Kernel, Signature};
use crate::kernel::twin::TwinArgs;
use crate::random::philox::Philox;
use crate::run_state::ORDER_LEN;
use crate::shader::binding::Binding;
use crate::shader::dispatch::Dispatch;
use crate::shader::module::part;
use crate::shader::param::Param;
use crate::storage::element::with_element;
use crate::storage::stored_types::{Group, Template};

const AUGMENT_IMAGES: Template = Template::new(&[part!("augment_images.wgsl")], &[Group::one("Y").stores()]);
const DRAWS: Template = Template::new(&[part!("augment_images_draws.wgsl"), part!("../random/random_words.wgsl")], &[]);

/// Images of a table, augmented and standardised: padding, crop, flip, cutout, brightness and contrast in one pass.
///
/// `y[i, r, c, ch] = ((table[rows[i]][s] - mean[s]) inv_std[s] + b) f`, where `s` is the pixel of the image that the crop has at
/// `(r, c)`, channel `ch`; crop, flip, `b` and `f` are drawn for each image, by its id and the epoch, as [`ImageAugmentation`]
/// defines. The ids are the rows themselves, unless the table is a part of a larger one: augmentation is then the same if `ids`
/// are the images' rows there. As with [`GatherRows`](crate::GatherRows) the buffer may hold a window of a larger table: the one
/// that starts at row 0 writes all of `y`, later ones their own images.
///
/// # Shapes
/// `table`: `[n_table_rows, height * width * n_channels]`, images with channels last; `rows`, `ids`: `[n]`; `order`:
/// [`ORDER_LEN`], whose epoch is read; `mean`, `inv_std`: `[height * width * n_channels]`; `y`:
/// `[n, crop height, crop width, n_channels]`.
/// # Dtypes
/// `table` f32 or u8, whose values are 0 to 255; `rows`, `ids`, `order` u32; the rest f32, `y` also in f16 and bf16 by
/// [`stored`](crate::stored).
/// # Cost
/// Two dispatches: a few random numbers for each image; then one byte read and four written for each value. Only the draws are
/// stored in between, 32 bytes per image.
/// # Reference
/// `torchvision.transforms.v2`: `RandomCrop(padding, padding_mode="reflect")`, `RandomHorizontalFlip`, `Normalize`, `ColorJitter`
/// on standardised values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AugmentImages {
    /// Element type of the table.
    pub dtype: DType,
    /// The row of the whole table that this buffer starts with; 0 for a whole table.
    pub first_row: usize,
    /// Images that this buffer holds.
    pub n_table_rows: usize,
    /// Height, width and channels of an image of the table.
    pub image: [usize; 3],
    /// Height and width of an image of the batch.
    pub crop: [usize; 2],
    /// Images of the batch.
    pub n: usize,
    /// The augmentation.
    pub augmentation: ImageAugmentation,
}

/// Words of the draws of an image.
const DRAWS_LEN: usize = 8;

impl AugmentImages {
    fn n_cols(&self) -> usize {
        self.image.iter().fold(1, |n, len| n.saturating_mul(*len))
    }

    fn crop_len(&self) -> usize {
        self.crop.iter().fold(self.image[2], |n, len| n.saturating_mul(*len))
    }

    fn draws_params(&self) -> [(&'static str, Param); 12] {
        let ImageAugmentation { pad, flip, cutout, brightness, contrast, seed, .. } = self.augmentation;
        let [n_tops, n_lefts] = self.augmentation.n_offsets(self.image, self.crop);
        let [n_cutout_tops, n_cutout_lefts] = self.crop.map(|len| len - cutout + 1);
        let flip = match flip {
            Flip::Never => 0_u32,
            Flip::Random => 1,
            Flip::Alternating => 2,
        };
        let [key_low, key_high] = Philox::new(seed).key;
        [
            ("n", self.n.into()),
            ("pad", pad.into()),
            ("n_tops", n_tops.into()),
            ("n_lefts", n_lefts.into()),
            ("n_cutout_tops", n_cutout_tops.into()),
            ("n_cutout_lefts", n_cutout_lefts.into()),
            ("flip", flip.into()),
            ("brightness", brightness.into()),
            ("contrast", contrast.into()),
            ("key_low", key_low.into()),
            ("key_high", key_high.into()),
            ("reserved", 0_u32.into()),
        ]
    }
}

impl Kernel for AugmentImages {
    fn signature(&self) -> Signature {
        let y = if self.first_row == 0 { Arg::write } else { Arg::read_write };
        let [height, width] = self.crop;
        let args = [
            Arg::read("table", self.dtype, [self.n_table_rows, self.n_cols()]),
            Arg::read("rows", DType::U32, self.n),
            Arg::read("ids", DType::U32, self.n),
            Arg::read("order", DType::U32, ORDER_LEN),
            Arg::read("mean", DType::F32, self.n_cols()),
            Arg::read("inv_std", DType::F32, self.n_cols()),
            y("y", DType::F32, [self.n, height, width, self.image[2]]),
            Arg::scratch("draws", DType::U32, [self.n, DRAWS_LEN]),
        ];
        Signature::new("augment_images", args)
    }

    fn check(&self) -> Result<(), Error> {
        let is_known = matches!(self.dtype, DType::F32 | DType::U8);
        check_supported(self.name(), is_known, || format!("a table of {:?}", self.dtype), "F32 or U8")?;
        let [height, width, n_channels] = self.image;
        let end = self.first_row.saturating_add(self.n_table_rows);
        let sizes = [
            ("n_table_rows", self.n_table_rows),
            ("height", height),
            ("width", width),
            ("n_channels", n_channels),
            ("n", self.n),
            ("last row", end),
        ];
        check_sizes(self, &sizes)?;
        self.augmentation.check(self, self.image, self.crop)
    }

    by_stored_form!();

    fn twin(&self, args: &mut TwinArgs<'_>) {
        let batch = augment_images_cpu::ImageBatch { rows: args.read("rows"), ids: args.read("ids"), order: args.read("order") };
        let (mean, inv_std) = (args.read("mean"), args.read("inv_std"));
        with_element!(args.dtype("y"), Y => match self.dtype {
            DType::U8 => augment_images_cpu::run::<u8, Y>(self, args.read("table"), &batch, mean, inv_std, args.write("y")),
            _ => augment_images_cpu::run::<f32, Y>(self, args.read("table"), &batch, mean, inv_std, args.write("y")),
        });
    }

    fn cost(&self) -> Cost {
        let n = self.n.saturating_mul(self.crop_len()) as u64;
        Cost { flops: 4 * n, bytes: (self.dtype.size_bytes() as u64 + 4) * n + 40 * self.n as u64 }
    }
}

impl StoredForm for AugmentImages {
    /// Each invocation writes two values.
    fn nearest(&self, dtypes: &[DType]) -> Option<Vec<DType>> {
        sharing(self, &[6], dtypes).filter(|_| self.crop_len().is_multiple_of(2))
    }

    fn stored_dispatches(&self, dtypes: &[DType], _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let args = self.args();
        let draws = Dispatch::elementwise(self.name(), "kernels.augment_images", DRAWS.module(&[]), self.n)?
            .params(self.draws_params())
            .bind(&args, ["ids", "order"], ["draws"])?;

        let load = if self.dtype == DType::U8 { part!("../batch/table_u8.wgsl") } else { part!("../batch/table_f32.wgsl") };
        let module = AUGMENT_IMAGES.module(&[("Y", dtypes[6])]).with(load).with(VectorWidth::One.part());
        let n = self.n * self.crop_len();
        let ImageAugmentation { border, cutout, .. } = self.augmentation;
        let augment = Dispatch::elementwise(self.name(), "kernels.augment_images", module, n.div_ceil(2))?
            .param("n", n)
            .param("height", self.image[0])
            .param("width", self.image[1])
            .param("n_channels", self.image[2])
            .param("crop_height", self.crop[0])
            .param("crop_width", self.crop[1])
            .param("first_row", self.first_row)
            .param("n_table_rows", self.n_table_rows)
            .param("cutout", cutout)
            .param("is_reflected", u32::from(border == Border::Reflect));
        let y = Binding::of("y").elements("Y");
        let augment = augment.bind(&args, ["table", "rows", "mean", "inv_std", "draws"].map(Binding::of), [y])?;
        Ok(vec![draws, augment])
    }
}
