//! Expectations about cells, used by the importers of text, Arrow and Parquet.

use crate::remedy::Expected;
use crate::remedy::Remedy::*;

pub(crate) const NUMBER: Expected = Expected { what: "a number", remedies: &[Correct, DropColumn, MakeCategorical, SkipRows] };
pub(crate) const FINITE: Expected = Expected { what: "a finite number", remedies: &[KeepMissing, SkipRows] };
pub(crate) const IN_RANGE: Expected =
    Expected { what: "a number within the range of f32, up to 3.4e38", remedies: &[ScaleColumn] };
#[cfg(feature = "half")]
pub(crate) const IN_RANGE_OF_F16: Expected =
    Expected { what: "a number within the range of f16, up to 65504", remedies: &[ScaleColumn, StoreAsF32] };
pub(crate) const BYTE: Expected = Expected { what: "a whole number from 0 to 255, to be stored as u8", remedies: &[StoreAsF32] };
pub(crate) const NOT_MISSING: Expected =
    Expected { what: "a number, this is a missing value", remedies: &[KeepMissing, FillMissing, SkipRows] };
pub(crate) const WEIGHT: Expected =
    Expected { what: "a weight, which is a finite number of at least 0", remedies: &[Correct, SkipRows] };
pub(crate) const TEXT: Expected = Expected { what: "text in UTF-8", remedies: &[ConvertText, DropColumn, SkipRows] };

pub(crate) const LABEL: Expected =
    Expected { what: "a label, which is a finite number", remedies: &[Correct, OtherLabel, LabelsAsClasses, SkipRows] };
pub(crate) const LABEL_NOT_MISSING: Expected =
    Expected { what: "a label, this is a missing value", remedies: &[Correct, OtherLabel, SkipRows] };
pub(crate) const BINARY_LABEL: Expected =
    Expected { what: "a label 0 or 1", remedies: &[OtherLabel, LabelsAsNumbers, LabelsAsClasses] };
pub(crate) const CLASS: Expected = Expected { what: "a class, this is a missing value", remedies: &[Correct, SkipRows] };
pub(crate) const CLASS_IN_UTF8: Expected = Expected { what: "a class in UTF-8", remedies: &[ConvertText, SkipRows] };
pub(crate) const GIVEN_CLASS: Expected = Expected { what: "one of the classes that were given", remedies: &[AddClass, SkipRows] };
