use std::collections::HashMap;

use brisk_atomic_file::{listed, nearest};

use super::features::{FeatureRules, OnMissing};
use super::{Categorical, Class, ColumnOptions, ColumnRef, FeatureDType, Indicators, LabelKind, Like, Missing};
use crate::error::SourceError;
use crate::format::RecordedSettings;
use crate::import_format::{ImportSetting, Unused};
use crate::schema::Weights;

/// The roles of the columns of a source. Columns are counted from 0, and a column without a role is dropped.
#[derive(Debug)]
pub(crate) struct Roles {
    /// Every column of the source.
    pub(crate) names: Vec<String>,
    /// The columns that are features, in the order of the table.
    pub(crate) features: Vec<usize>,
    /// The columns that are categories, in the order of the table.
    pub(crate) categories: Vec<usize>,
    /// The columns that are labels, in the order of the table.
    pub(crate) label_columns: Vec<usize>,
    pub(crate) weight: Option<usize>,
    pub(crate) labels: Labels,
    pub(crate) rules: FeatureRules,
    /// The features that have an indicator, by their index among the features.
    pub(crate) indicators: Vec<usize>,
    /// The names of the columns that are left out because they are the index of a data frame.
    pub(crate) left_out: Vec<String>,
}

/// What the labels are converted to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Labels {
    Number,
    Binary,
    /// There are none.
    Absent,
    /// Classes that are collected during the import.
    Found,
    Known(KnownClasses),
}

/// Classes and all their spellings.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KnownClasses {
    pub(crate) names: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Labels {
    pub(crate) fn of(kind: &LabelKind) -> Result<Self, String> {
        Ok(match kind {
            LabelKind::Number => Self::Number,
            LabelKind::Binary => Self::Binary,
            LabelKind::Absent => Self::Absent,
            LabelKind::Classes => Self::Found,
            LabelKind::Given(classes) => Self::Known(KnownClasses::new(classes)?),
        })
    }

    /// Whether labels are read as text, and are `u32` in the table.
    pub(crate) fn are_classes(&self) -> bool {
        matches!(self, Self::Found | Self::Known(_))
    }
}

impl KnownClasses {
    pub(crate) fn number(&self, text: &str) -> Option<u32> {
        self.numbers.get(text).copied()
    }

    fn new(classes: &[Class]) -> Result<Self, String> {
        let mut numbers = HashMap::new();
        for (number, class) in (0..).zip(classes) {
            for spelling in std::iter::once(&class.name).chain(&class.also) {
                if numbers.insert(spelling.clone(), number).is_some() {
                    return Err(format!("the classes have {spelling:?} twice; give each spelling to one of them"));
                }
            }
        }
        Ok(Self { names: classes.iter().map(|class| class.name.clone()).collect(), numbers })
    }
}

impl Roles {
    /// The roles that `options`, or the table to match, give to the columns of a source, which have these names.
    /// `index` are the columns that are the index of a data frame, and `has_text` returns whether a column was found to contain
    /// text.
    pub(crate) fn find(
        names: &[String],
        options: &ColumnOptions,
        like: Option<&Like>,
        index: &[usize],
        has_text: &dyn Fn(usize) -> bool,
    ) -> Result<Self, SourceError> {
        if options.keep_index && index.is_empty() {
            let (setting, reason) = (ImportSetting::KeepIndex, Unused::NoIndex);
            return Err(SourceError::UnusedSetting { setting, reason });
        }
        let finder = Finder { names, options, index: if options.keep_index { &[] } else { index } };
        let mut roles = match like {
            Some(like) => finder.by_table(like),
            None => finder.by_options(has_text),
        }?;
        roles.rules = finder.with_offsets(&roles, like)?;
        let left_out = finder.index.iter().filter(|&&col| !roles.uses(col));
        roles.left_out = left_out.map(|&col| names[col].clone()).collect();
        Ok(roles)
    }

    fn uses(&self, col: usize) -> bool {
        let Self { features, categories, label_columns, weight, .. } = self;
        features.iter().chain(categories).chain(label_columns).chain(weight).any(|&used| used == col)
    }

    /// The names of the table's features, followed by those of the indicators.
    pub(crate) fn feature_names(&self) -> Vec<String> {
        let columns = self.features.iter().map(|&col| self.names[col].clone());
        columns.chain(self.indicator_names().map(|name| format!("{name}_missing"))).collect()
    }

    pub(crate) fn indicator_names(&self) -> impl Iterator<Item = &String> {
        self.indicators.iter().map(|&feature| &self.names[self.features[feature]])
    }

    /// The names of the labels; empty if no column is a label.
    pub(crate) fn label_names(&self) -> Vec<String> {
        self.label_columns.iter().map(|&col| self.names[col].clone()).collect()
    }

    /// The number of labels per row of the table.
    pub(crate) fn n_labels(&self) -> usize {
        self.label_columns.len().max(1)
    }

    /// The numbers of a row: features including indicators, labels, and the weight if there is one.
    pub(crate) fn n_numbers(&self) -> usize {
        self.rules.n_features() + self.n_labels() + usize::from(self.weight.is_some())
    }

    /// The settings that an import needs to match the table.
    pub(crate) fn settings(&self) -> RecordedSettings {
        let features = self.features.iter().enumerate();
        let labels = (self.rules.n_features()..).zip(&self.label_columns);
        let offsets = features.chain(labels).map(|(place, &col)| (self.names[col].clone(), self.rules.offset(place)));
        RecordedSettings {
            missing_values: self.rules.words.clone(),
            offsets: offsets.filter(|&(_, offset)| offset != 0.0).collect(),
            weight: self.weight.map(|col| self.names[col].clone()),
            ..RecordedSettings::default()
        }
    }

    pub(crate) fn category_names(&self) -> Vec<String> {
        self.categories.iter().map(|&col| self.names[col].clone()).collect()
    }
}

impl ColumnRef {
    /// The index of this column among columns with these names; `role` is what it is for, as messages
    /// say.
    ///
    /// # Errors
    /// [`SourceError::NoColumn`], [`SourceError::AmbiguousColumn`].
    pub fn find(&self, names: &[String], role: &'static str) -> Result<usize, SourceError> {
        let named = |name: &str| names.iter().position(|other| other == name);
        let indexed = |index: usize| (index < names.len()).then_some(index);
        let found = match self {
            Self::Last => names.len().checked_sub(1),
            Self::Index(index) => indexed(*index),
            Self::Name(name) => named(name),
            Self::Word(word) => match (named(word), word.parse().ok().and_then(indexed)) {
                (Some(named), Some(indexed)) if named != indexed => {
                    let indexed = names[indexed].clone();
                    return Err(SourceError::AmbiguousColumn { role, word: word.clone(), named, indexed });
                }
                (Some(col), _) | (None, Some(col)) => Some(col),
                (None, None) => match word.split_once(':') {
                    Some(("name", name)) => named(name),
                    Some(("index", index)) => index.parse().ok().and_then(indexed),
                    _ => None,
                },
            },
        };
        found.ok_or_else(|| SourceError::NoColumn {
            role,
            asked: self.to_string(),
            nearest: match self {
                Self::Name(name) | Self::Word(name) => nearest(name, names.iter().map(String::as_str)).map(Box::from),
                Self::Last | Self::Index(_) => None,
            },
            found: names.to_vec(),
        })
    }
}

struct Finder<'a> {
    names: &'a [String],
    options: &'a ColumnOptions,
    /// The columns that are the index of a data frame, and are features only if they are named.
    index: &'a [usize],
}

impl Finder<'_> {
    fn by_options(&self, has_text: &dyn Fn(usize) -> bool) -> Result<Roles, SourceError> {
        let (names, options) = (self.names, self.options);
        let label_columns = self.label_columns()?;
        let weight = self.weight(&label_columns)?;
        let dropped = self.columns(&options.drop, "columns to drop")?;
        if let Some(&both) = dropped.iter().find(|&&col| label_columns.contains(&col) || Some(col) == weight) {
            return self.wrong(format!("column `{}` is both dropped and used as label or weight; choose one", names[both]));
        }
        let is_free = |col: &usize| !label_columns.contains(col) && Some(*col) != weight && !dropped.contains(col);
        let is_data = |col: &usize| is_free(col) && !self.index.contains(col);
        let categories: Vec<usize> = match &options.categorical {
            Categorical::No => Vec::new(),
            Categorical::Auto => (0..names.len()).filter(is_data).filter(|&col| has_text(col)).collect(),
            Categorical::Columns(columns) => {
                let mut columns = self.columns(columns, "categorical columns")?;
                columns.sort_unstable();
                columns.dedup();
                columns
            }
        };
        if let Some(&both) = categories.iter().find(|&col| !is_free(col)) {
            let name = &names[both];
            return self.wrong(format!("column `{name}` is categorical and also label, weight or dropped; choose one"));
        }
        let features: Vec<usize> = match &options.features {
            None => (0..names.len()).filter(is_data).filter(|col| !categories.contains(col)).collect(),
            Some(features) => self.columns(features, "features")?,
        };
        let is_twice = |at: usize| features[..at].contains(&features[at]);
        let has_role = |at: usize| !is_free(&features[at]) || categories.contains(&features[at]);
        if let Some(at) = (0..features.len()).find(|&at| has_role(at) || (options.features.is_some() && is_twice(at))) {
            let name = &names[features[at]];
            return self.wrong(format!("column `{name}` is named as a feature twice, or has another role; choose one"));
        }
        if features.is_empty() && categories.is_empty() {
            return self
                .wrong(format!("no column is left for features, the file has {}; is the delimiter right?", listed(names)));
        }
        let indicators = match &options.indicators {
            Indicators::No => Vec::new(),
            Indicators::All => (0..features.len()).collect(),
            Indicators::Columns(columns) => {
                let place = |col: usize| {
                    let none = || format!("column `{}` cannot have an indicator, since it is not a feature", names[col]);
                    features.iter().position(|&feature| feature == col).ok_or_else(none)
                };
                let places = self.columns(columns, "indicators")?.into_iter().map(place).collect::<Result<_, _>>();
                places.or_else(|problem| self.wrong(problem))?
            }
        };
        if options.dtype == FeatureDType::U8 && options.missing == Missing::Mean {
            return self.wrong(
                "features stored as u8 cannot hold a mean; store them as f32, or fill missing values with a number".to_owned(),
            );
        }
        let on_missing = OnMissing::of(options.missing, features.len());
        Ok(Roles {
            names: names.to_vec(),
            rules: FeatureRules::new(features.len(), on_missing, &options.missing_values, indicators.clone(), options.dtype),
            features,
            categories,
            label_columns,
            weight,
            labels: Labels::of(&options.label_kind).or_else(|problem| self.wrong(problem))?,
            indicators,
            left_out: Vec::new(),
        })
    }

    fn by_table(&self, like: &Like) -> Result<Roles, SourceError> {
        let options = self.options;
        let named = |name: &str, role| self.column(&ColumnRef::from(name), role);
        let dropped = self.columns(&options.drop, "columns to drop")?;
        let label_columns = match (&options.label_kind, &like.metadata.label_names[..]) {
            (LabelKind::Absent, _) => Vec::new(),
            (_, []) => self.label_columns()?,
            (_, names) => names.iter().map(|name| named(name, "label")).collect::<Result<_, _>>()?,
        };
        if !label_columns.is_empty() && label_columns.len() != like.n_labels {
            let (found, expected) = (label_columns.len(), like.n_labels);
            return self.wrong(format!("{found} label columns, the table to match has {expected}; name as many"));
        }
        let features = like.features().iter().map(|name| named(name, "features")).collect::<Result<Vec<_>, _>>()?;
        let categories = like.metadata.dictionaries.iter().map(|dictionary| named(dictionary.name(), "categorical columns"));
        let place = |name: &String| like.features().iter().position(|feature| feature == name);
        let indicators: Vec<usize> = like.metadata.indicators.iter().filter_map(place).collect();
        let weight = self.weight_of(like, &label_columns)?;
        let mut used = features.iter().chain(&label_columns).chain(&weight);
        if let Some(&both) = used.find(|col| dropped.contains(col)) {
            let name = &self.names[both];
            return self.wrong(format!("column `{name}` is dropped, but the table to match has it; drop only other columns"));
        }
        let on_missing = match &like.metadata.imputed {
            Some(values) => OnMissing::Fill(values.clone()),
            None => OnMissing::of(options.missing, features.len()),
        };
        let labels = match (&like.metadata.classes[..], &options.label_kind) {
            (_, LabelKind::Absent) => Ok(Labels::Absent),
            ([], LabelKind::Binary) => Ok(Labels::Binary),
            ([], LabelKind::Number) => Ok(Labels::Number),
            ([], LabelKind::Classes | LabelKind::Given(_)) => {
                Err("labels are classes, but those of the table to match are numbers; import both as one kind".to_owned())
            }
            (_, LabelKind::Binary) => {
                Err("labels are 0 or 1, but those of the table to match are classes; leave out the kind of labels".to_owned())
            }
            // The given classes are the same, and may have more spellings.
            (names, LabelKind::Given(given)) if given.iter().map(|class| &class.name).eq(names) => {
                KnownClasses::new(given).map(Labels::Known)
            }
            (names, _) => {
                let classes: Vec<Class> = names.iter().map(|name| Class::from(name.as_str())).collect();
                KnownClasses::new(&classes).map(Labels::Known)
            }
        };
        let missing_values = self.missing_values_of(like)?;
        Ok(Roles {
            names: self.names.to_vec(),
            rules: FeatureRules::new(features.len(), on_missing, missing_values, indicators.clone(), like.dtype()),
            categories: categories.collect::<Result<_, _>>()?,
            features,
            weight,
            label_columns,
            labels: labels.or_else(|problem| self.wrong(problem))?,
            indicators,
            left_out: Vec::new(),
        })
    }

    /// The columns that the options name as labels; empty if labels are absent.
    fn label_columns(&self) -> Result<Vec<usize>, SourceError> {
        let ColumnOptions { labels, label_kind, .. } = self.options;
        if *label_kind == LabelKind::Absent {
            return Ok(Vec::new());
        }
        let columns = self.columns(labels, "label")?;
        let is_named = |label: &ColumnRef, col: usize| match label {
            ColumnRef::Name(_) => true,
            ColumnRef::Word(word) => *word == self.names[col] || word.starts_with("name:"),
            ColumnRef::Last | ColumnRef::Index(_) => false,
        };
        let is_index = |&(label, &col): &(&ColumnRef, &usize)| self.index.contains(&col) && !is_named(label, col);
        if let Some((_, &index)) = labels.iter().zip(&columns).find(is_index) {
            return Err(SourceError::IndexAsLabel { index, name: self.names[index].clone() });
        }
        if let Some(twice) = (1..columns.len()).find(|&at| columns[..at].contains(&columns[at])) {
            let name = &self.names[columns[twice]];
            return self.wrong(format!("column `{name}` is named as a label twice; name it once"));
        }
        match (&columns[..], label_kind) {
            ([], _) => self.wrong("no column is named as the label; name one, or pass `LabelKind::Absent`".to_owned()),
            ([first, second, ..], LabelKind::Classes | LabelKind::Given(_)) => {
                let (first, second) = (&self.names[*first], &self.names[*second]);
                let problem = format!(
                    "columns `{first}` and `{second}` are both named as labels with classes, but only one column can have classes; name one, or import numbers, or 0 and 1"
                );
                self.wrong(problem)
            }
            _ => Ok(columns),
        }
    }

    fn weight(&self, labels: &[usize]) -> Result<Option<usize>, SourceError> {
        let weight = self.options.weight.as_ref().map(|weight| self.column(weight, "weight")).transpose()?;
        if let Some(both) = weight.filter(|weight| labels.contains(weight)) {
            let name = &self.names[both];
            return self.wrong(format!("column `{name}` is named as both label and weight; choose another weight"));
        }
        Ok(weight)
    }

    /// The weight, if the table to match has weights. Rows without labels need none.
    fn weight_of(&self, like: &Like, labels: &[usize]) -> Result<Option<usize>, SourceError> {
        let weight = self.weight(labels)?;
        let named = weight.map(|col| &self.names[col]);
        match (named, &like.metadata.settings.weight, like.weights) {
            (Some(named), _, Weights::Absent) => self.wrong(format!(
                "column `{named}` is named as the weight, but the table to match has no weights; import both with a weight, or neither"
            )),
            (Some(named), Some(recorded), _) if named != recorded => self.wrong(format!(
                "column `{named}` is named as the weight, that of the table to match is `{recorded}`; rename the column, or leave out the option"
            )),
            (Some(_), ..) | (None, _, Weights::Absent) => Ok(weight),
            (None, ..) if self.options.label_kind == LabelKind::Absent => Ok(None),
            (None, Some(recorded), _) => self.column(&ColumnRef::from(recorded.as_str()), "weight").map(Some),
            (None, None, _) => self.wrong("the table to match has weights, of which it does not name the column; name it".to_owned()),
        }
    }

    /// The cells that count as missing: those of the table to match, or those of the options, which may be more.
    fn missing_values_of<'a>(&'a self, like: &'a Like) -> Result<&'a [String], SourceError> {
        let (given, recorded) = (&self.options.missing_values, &like.metadata.settings.missing_values);
        let is_left_out = |word: &&String| !given.iter().any(|given| given.trim() == word.as_str());
        match recorded.iter().find(is_left_out) {
            Some(word) if !given.is_empty() => self.wrong(format!(
                "{} count as missing, but in the table to match {word:?} does too; name it as well, or leave out the option",
                listed(given)
            )),
            Some(_) => Ok(recorded),
            None => Ok(given),
        }
    }

    fn columns(&self, asked: &[ColumnRef], role: &'static str) -> Result<Vec<usize>, SourceError> {
        asked.iter().map(|asked| self.column(asked, role)).collect()
    }

    fn column(&self, asked: &ColumnRef, role: &'static str) -> Result<usize, SourceError> {
        match asked {
            ColumnRef::Last => match (0..self.names.len()).rev().find(|col| !self.index.contains(col)) {
                Some(last) => Ok(last),
                None => asked.find(self.names, role),
            },
            _ => asked.find(self.names, role),
        }
    }

    /// The rules with the offsets of the options, and of the table to match.
    fn with_offsets(&self, roles: &Roles, like: Option<&Like>) -> Result<FeatureRules, SourceError> {
        let rules = roles.rules.clone();
        let (given, mut recorded) = (&self.options.offsets, Vec::new());
        if let Some(like) = like {
            let is_left_out = |name| self.options.label_kind == LabelKind::Absent && like.metadata.label_names.contains(name);
            recorded.extend(like.metadata.settings.offsets.iter().filter(|(name, _)| !is_left_out(name)));
        }
        if given.is_empty() && recorded.is_empty() {
            return Ok(rules);
        }
        let n_features = rules.n_features();
        let mut offsets = vec![0.0; n_features + roles.n_labels()];
        let place = |col: usize| {
            let feature = roles.features.iter().position(|&feature| feature == col);
            let label = roles.label_columns.iter().position(|&label| label == col && roles.labels == Labels::Number);
            match feature.or(label.map(|label| n_features + label)) {
                Some(place) => Ok(place),
                None => self.wrong(format!(
                    "column `{}` cannot have an offset, since it is neither a feature nor a label that is a number",
                    self.names[col]
                )),
            }
        };
        for (name, offset) in recorded {
            offsets[place(self.column(&ColumnRef::from(name.as_str()), "offsets")?)?] = *offset;
        }
        let mut shifted_columns = Vec::new();
        for (column, offset) in given {
            let col = self.column(column, "offsets")?;
            let name = &self.names[col];
            if shifted_columns.contains(&col) {
                return self.wrong(format!("column `{name}` has two offsets; choose one"));
            }
            shifted_columns.push(col);
            let place = place(col)?;
            if !offset.is_finite() {
                return self.wrong(format!("the offset of column `{name}` is {offset}; pass a finite number"));
            }
            if like.is_some() && offsets[place] != *offset {
                let of_table = offsets[place];
                return self.wrong(format!(
                    "the offset of column `{name}` is {offset}, in the table to match it is {of_table}; leave it out, or import both with the same"
                ));
            }
            offsets[place] = *offset;
        }
        Ok(rules.with_offsets(offsets, like.is_some_and(|like| like.metadata.imputed.is_some())))
    }

    fn wrong<T>(&self, problem: String) -> Result<T, SourceError> {
        Err(SourceError::roles(problem, &[]))
    }
}
