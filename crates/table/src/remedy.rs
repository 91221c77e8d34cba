use std::fmt;

/// Each with its text in messages.
macro_rules! remedies {
    ($($(#[$doc:meta])* $name:ident $text:literal;)*) => {
        /// What the caller of an importer can do about an error.
        ///
        /// Messages name the settings of this crate. A program with its own options prints
        /// [`Error::problem`](crate::Error::problem), and names its options for the
        /// [`Error::remedies`](crate::Error::remedies).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Remedy {
            $($(#[$doc])* $name,)*
        }

        impl fmt::Display for Remedy {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$name => $text,)*
                })
            }
        }
    };
}

remedies! {
    /// Correct what was found.
    Correct "correct it";
    /// Sort the row.
    SortRow "sort the row";
    /// Remove a file that is not an image.
    RemoveFile "remove it";
    /// Move an image into the folder of its class.
    MoveToClass "move it into the folder of its class";
    /// Convert the text to UTF-8.
    ConvertText "convert the file to UTF-8";
    /// Skip such rows, with `BadRows::Skip`.
    SkipRows "pass `BadRows::Skip`";
    /// Keep values that are missing or not finite, with `Missing::Keep`.
    KeepMissing "pass `Missing::Keep` to keep it";
    /// Keep values of arrays that are not finite, with `NotFinite::Keep`.
    KeepNotFinite "pass `NotFinite::Keep` to keep it";
    /// Replace missing values, with `Missing::Mean` or `Missing::Value`.
    FillMissing "pass `Missing::Mean` or `Missing::Value` to replace it";
    /// Replace missing values by a number, with `Missing::Value`.
    FillMissingWithNumber "pass `Missing::Value`";
    /// Predict another column, named by `ColumnOptions::labels`.
    OtherLabel "name another column in `ColumnOptions::labels`";
    /// Store labels as numbers, with `LabelKind::Number`.
    LabelsAsNumbers "pass `LabelKind::Number`";
    /// Store labels as classes, with `LabelKind::Classes`.
    LabelsAsClasses "pass `LabelKind::Classes`";
    /// Add the class to the ones that were given, in `LabelKind::Given`.
    AddClass "add it to `LabelKind::Given`";
    /// Take the weights of rows from another column, named by `ColumnOptions::weight`.
    OtherWeight "name another column in `ColumnOptions::weight`";
    /// Leave the column out, with `ColumnOptions::drop`.
    DropColumn "name the column in `ColumnOptions::drop`";
    /// Store the column as codes, with `ColumnOptions::categorical`.
    MakeCategorical "name the column in `ColumnOptions::categorical`";
    /// Subtract an offset from the column before it is rounded, with `ColumnOptions::offsets`.
    SubtractOffset "subtract an offset with `ColumnOptions::offsets`";
    /// Keep the index of a data frame as a column, with `ColumnOptions::keep_index`.
    KeepIndex "keep the index with `ColumnOptions::keep_index`";
    /// Rename one of two columns.
    RenameColumn "rename one of them";
    /// Scale the column to the range of its type.
    ScaleColumn "scale the column";
    /// Store features as `f32`, with `FeatureDType::F32`.
    StoreAsF32 "pass `FeatureDType::F32`";
    /// Leave out the lines above the table, with `CsvOptions::skip_lines`.
    SkipLines "leave out the lines above it with `CsvOptions::skip_lines`";
    /// Say that the first line names the columns, with `Header::Present`.
    HeaderPresent "pass `Header::Present`";
    /// Say that the first line is a row, with `Header::Absent`.
    HeaderAbsent "pass `Header::Absent`";
    /// Name the format of the source, with `ImportOptions::format`.
    NameFormat "name its format in `ImportOptions::format`";
    /// Name the array of features, with `NpyOptions::features`.
    NameFeatures "name the features in `NpyOptions::features`";
    /// Name the array, file or column of the labels, with `NpyOptions::labels`.
    NameLabels "name the labels in `NpyOptions::labels`";
    /// Name the file of the labels, with `IdxOptions::labels`.
    NameLabelsFile "name the file of labels in `IdxOptions::labels`";
    /// Read the source as CIFAR-10, with `CifarLabels::Ten`.
    ReadAsCifar10 "pass `CifarLabels::Ten` for CIFAR-10";
    /// Read the source as CIFAR-100, with `CifarLabels::Fine` or `CifarLabels::Coarse`.
    ReadAsCifar100 "pass `CifarLabels::Fine` or `CifarLabels::Coarse` for CIFAR-100";
    /// Convert images to the same channels, with `Channels`.
    ConvertChannels "choose the channels in `ImagesOptions::channels`";
    /// Resize images to one size, with `ImagesOptions::size`.
    ScaleImages "resize them with `ImagesOptions::size`";
    /// Let a row have more features, with `SvmlightOptions::n_features`.
    MoreFeatures "pass a larger `SvmlightOptions::n_features`";
    /// Allow indices of features to begin with 0, with `FirstIndex::Zero` or `FirstIndex::Auto`.
    FirstIndexZero "pass `FirstIndex::Zero` or `FirstIndex::Auto`";
}

/// What an importer expected instead of what it found, and what the caller can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Expected {
    /// What was expected.
    pub what: &'static str,
    /// What the caller can do.
    pub remedies: &'static [Remedy],
}

/// Remedies at the end of a message: `; this, that, or the other`.
pub(crate) struct Choice<'a>(pub(crate) &'a [Remedy]);

impl fmt::Display for Choice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.0.len().saturating_sub(1);
        for (i, remedy) in self.0.iter().enumerate() {
            let before = match i {
                0 => "; ",
                1 if last == 1 => " or ",
                i if i == last => ", or ",
                _ => ", ",
            };
            write!(f, "{before}{remedy}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(remedies: &[Remedy], expected: &str) {
        assert_eq!(format!("a number{}", Choice(remedies)), expected);
    }

    #[test]
    fn remedies_are_joined_as_in_a_sentence() {
        check(&[], "a number");
        check(&[Remedy::ScaleColumn], "a number; scale the column");
        check(&[Remedy::Correct, Remedy::SkipRows], "a number; correct it or pass `BadRows::Skip`");
        let three = &[Remedy::Correct, Remedy::LabelsAsClasses, Remedy::SkipRows];
        check(three, "a number; correct it, pass `LabelKind::Classes`, or pass `BadRows::Skip`");
    }
}
