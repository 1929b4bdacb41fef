//! Columns as a file in the Parquet format.

use std::sync::Arc;

use anyhow::Result;
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use serde_json::Value;

use super::columns::{Column, ColumnType};

/// The columns as a file. All columns may have nulls.
pub fn bytes(columns: &[Column]) -> Result<Vec<u8>> {
    let fields = columns.iter().map(field).collect::<Result<_, _>>()?;
    let schema = Type::group_type_builder("points")
        .with_fields(fields)
        .build()?;
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), properties)?;
    let mut group = writer.next_row_group()?;
    for column in columns {
        match column.column_type() {
            ColumnType::Bool => write::<BoolType>(&mut group, column, Value::as_bool),
            ColumnType::Int => write::<Int64Type>(&mut group, column, Value::as_i64),
            ColumnType::Float => write::<DoubleType>(&mut group, column, Value::as_f64),
            ColumnType::Text => write::<ByteArrayType>(&mut group, column, |value| match value {
                Value::Null => None,
                Value::String(text) => Some(ByteArray::from(text.as_str())),
                other => Some(ByteArray::from(other.to_string().as_str())),
            }),
        }?;
    }
    group.close()?;
    Ok(writer.into_inner()?)
}

fn field(column: &Column) -> parquet::errors::Result<Arc<Type>> {
    let (physical, logical) = match column.column_type() {
        ColumnType::Bool => (Physical::BOOLEAN, None),
        ColumnType::Int => (Physical::INT64, None),
        ColumnType::Float => (Physical::DOUBLE, None),
        ColumnType::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let field = Type::primitive_type_builder(&column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()?;
    Ok(Arc::new(field))
}

/// Writes a column. `read` gives None for a null.
fn write<T: DataType>(
    group: &mut SerializedRowGroupWriter<Vec<u8>>,
    column: &Column,
    read: impl Fn(&Value) -> Option<T::T>,
) -> Result<()> {
    let rows: Vec<Option<T::T>> = column.values.iter().map(read).collect();
    let levels: Vec<i16> = rows.iter().map(|row| i16::from(row.is_some())).collect();
    let values: Vec<T::T> = rows.into_iter().flatten().collect();
    let mut writer = group.next_column()?.expect("the schema has this column");
    writer
        .typed::<T>()
        .write_batch(&values, Some(&levels), None)?;
    writer.close()?;
    Ok(())
}
