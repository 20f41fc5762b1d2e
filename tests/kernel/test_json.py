"""The kernel's JSON reader and writer against Spark's own from_json and to_json."""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.kernel.support import decode, raw

FLAT = (
    "l BIGINT, i INT, s SMALLINT, b TINYINT, d DOUBLE, f FLOAT, t BOOLEAN, x STRING, `ké y` STRING"
)
NAMES = ["l", "i", "s", "b", "d", "f", "t", "x", "ké y"]

PLAIN = {
    "l": ["0", "7", "-1", "1469834917000", "-999999999999999999"],
    "i": ["0", "2147483647", "-2147483648"],
    "s": ["32767", "-32768", "5"],
    "b": ["127", "-128", "0"],
    "d": ["0.1", "12.34", "-0.5", "100", "0.30000000000000004", "123456789.123456789", "1.0"],
    "f": ["0.1", "16777216", "-3.25", "1.17549435", "3.4028234663852886"],
    "t": ["true", "false"],
    "x": ['"plain"', '""', '"grüße, 日本語 and 🙂"', '"a b/c"', '"\x7f"'],
    "ké y": ['"v"', '"\u2028"'],
}
ODD_NUMBERS = [
    "01", "-01", "00", "-0", "-0.0", "0.0", "1.", ".5", "+1", "-", "1e5", "1E-7", "1.5e300",
    "1e999", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "99999999999999999999999",
    "2147483648", "-2147483649", "32768", "128", "255", "256", "-129", "1.0", "1.5", "0x10", "1_0",
    "9007199254740993", "9007199254740993.0", "0.1000000000000000055511151231257827021181583404541",
    "4.35", "2.2250738585072014e-308", "4.9e-324", "1.7976931348623157e308", "NaN", "-Infinity",
    "Infinity", "+INF", "1 2", "1,2", "340282346638528859811704183484516925440.0", "0.1f", "1d",
    "123456789012345678.5", "16777217.0", "0.000000000000000000000000000000000000000000001", "١",
]  # fmt: skip
ODD_OTHERS = [
    "null", "nul", "nullx", "True", "tru", "truefalse", "undefined", "{}", "[]", '{"l":1}',
    "[1,[2]]", '"esc\\n\\u00e9\\"\\\\\\/"', '"\\x"', '"bad\nnewline"', '"tab\there"', '"\x01"',
    "'single'",
    '"open', '"12"', '"1.5"', '"NaN"', '"-INF"', '"true"', '""', "//c", "/*c*/1", "", '"\\ud800"',
]  # fmt: skip
INVALID_UTF8 = [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"]


def _spaces(rng: random.Random) -> str:
    if rng.random() < 0.95:
        return ""
    return rng.choice([" ", " ", "  ", "\t", "\r\n", "\x0b", "\xa0"])


def _value(rng: random.Random, name: str) -> str:
    kind = rng.random()
    if kind < 0.94:
        return rng.choice(PLAIN[name])
    if kind < 0.96:
        return "null"
    return rng.choice(ODD_NUMBERS if kind < 0.98 else ODD_OTHERS)


def _record(rng: random.Random) -> bytes:
    names = [n for n in NAMES if rng.random() < 0.8]
    if rng.random() < 0.3:
        rng.shuffle(names)
    if names and rng.random() < 0.05:
        names.append(rng.choice(names))  # a key twice
    members = [f'"{n}"{_spaces(rng)}:{_spaces(rng)}{_value(rng, n)}' for n in names]
    if rng.random() < 0.2:
        unknown = rng.choice(["L", "ll", "", "k\\u00e9 y", "other", "ke y", "lx"])
        odd = rng.choice([*PLAIN["x"], *PLAIN["d"], *ODD_NUMBERS, *ODD_OTHERS, "null", "true"])
        members.insert(rng.randrange(len(members) + 1), f'"{unknown}":{odd}')
    text = "{" + _spaces(rng) + f"{_spaces(rng)},{_spaces(rng)}".join(members) + "}"
    if rng.random() < 0.05:
        text = rng.choice([
            text + " ", " " + text, text + "x", text + text, "\ufeff" + text, f"[{text}]",
            text[:-1], text[:-1] + ",}", text + "}", "{," + text[1:],
        ])  # fmt: skip
    data = text.encode()
    if rng.random() < 0.15:  # one byte more, less or other, anywhere
        at = rng.randrange(len(data))
        byte = bytes([rng.randrange(256)])
        change = rng.choice([byte, b"", b'"', b"\\", b",", b"0", b" ", *INVALID_UTF8])
        data = data[:at] + change + data[at + rng.randrange(2) :]
    return data


def _hostile(count: int, seed: int) -> list[bytes]:
    rng = random.Random(seed)
    whole = [
        b"", b" ", b"\n", b"{}", b" { } ", b"null", b"1", b'"x"', b"[]", b"[{}]", b"{", b"}",
        b"true", b'{"l":1}garbage', b"\x00", b'{"x":"' + b"y" * 2_000_000 + b'"}', b"[" * 3000,
    ]  # fmt: skip
    each = [f'{{"{n}":{v}}}'.encode() for n in NAMES for v in ODD_NUMBERS + ODD_OTHERS]
    return whole + each + [_record(rng) for _ in range(count)]


def _truth(frame: DataFrame, schema: str) -> DataFrame:
    """What Spark makes of each record, or nothing if it is not all right."""
    parsed = F.from_json(
        "value", f"{schema}, bad STRING", {"columnNameOfCorruptRecord": "bad"}
    ).alias("p")
    good = F.col("p").isNotNull() & F.col("p.bad").isNull()
    row = F.when(good, F.col("p").dropFields("bad"))
    return frame.select("offset", parsed).select("offset", row.alias("expected"))


def _disagreements(frame: DataFrame, schema: str, *, comparable: bool = True) -> list[Any]:
    frame = frame.cache()
    columns = [F.col(f"`{f.name}`") for f in decode(frame, schema).schema.fields[:-3]]
    got = decode(frame, schema).select(
        F.col("__hg_position").alias("offset"),
        F.when(F.col("__hg_bad").isNull(), F.struct(*columns)).alias("got"),
        F.col("__hg_bad.reason").alias("reason"),
    )
    texts = frame.select("offset", "value")
    joined = got.join(_truth(frame, schema), "offset").join(texts, "offset")
    assert joined.count() == frame.count()
    # As text as well: 0.0 equals -0.0. And not only as text: that hides bytes that are no UTF-8.
    as_text = ["to_json(got)", "to_json(expected)"]
    same = "got <=> expected" if comparable else "true"
    different = joined.where(f"NOT ({same} AND {as_text[0]} <=> {as_text[1]})")
    found = different.selectExpr(*as_text, "reason", "left(value, 200)").limit(5).collect()
    frame.unpersist()
    return found


def test_should_read_every_record_as_from_json_does(spark: SparkSession) -> None:
    # few enough records a task that the decoder does not give the fast reader up
    frame = raw(spark, _hostile(12_000, seed=1), slices=16)
    good = decode(frame, FLAT).where("__hg_bad IS NULL").count()
    assert 4_000 < good < 10_000
    assert _disagreements(frame, FLAT) == []


def test_should_read_columns_of_other_types_as_from_json_does(spark: SparkSession) -> None:
    schema = (
        "l BIGINT, at TIMESTAMP, day DATE, price DECIMAL(10,2), tags ARRAY<STRING>,"
        " who STRUCT<id: BIGINT, name: STRING>, counts MAP<STRING, INT>, raw BINARY"
    )
    values = [
        '{"l":1}', '{"l":1,"at":null,"who":null}', '{"at":"2024-02-30T00:00:00Z"}',
        '{"at":"2024-02-29T12:00:00.123+01:00","day":"2024-02-29","price":"12.345","l":2}',
        '{"tags":["a",null,"b"],"who":{"id":1,"name":"x"},"counts":{"a":1,"b":null},"raw":"aGk="}',
        '{"who":{"id":"x"}}', '{"tags":"a"}', '{"counts":{"a":"b"}}', '{"price":99999999999}',
        '{"day":"x"}', '{"at":5}', '{"who":[1]}', '{"tags":[1,{"a":2}]}',
    ]  # fmt: skip
    # Spark does not compare maps
    assert _disagreements(raw(spark, [v.encode() for v in values]), schema, comparable=False) == []


@pytest.fixture
def accepts(spark: SparkSession) -> Any:
    """Whether the fast reader itself takes a record."""
    jvm: Any = spark._jvm
    schema = jvm.org.apache.spark.sql.types.StructType.fromDDL(FLAT)
    reader = jvm.org.apache.spark.sql.headgate.json.FlatJsonReader(schema)
    writer = jvm.org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter(len(NAMES), 64)
    utf8 = jvm.org.apache.spark.unsafe.types.UTF8String

    def accepts(text: str | bytes) -> bool:
        writer.reset()
        writer.zeroOutNullBytes()
        data = text.encode() if isinstance(text, str) else text
        return bool(reader.read(utf8.fromBytes(bytearray(data)), writer))

    return accepts


@pytest.mark.parametrize("name", NAMES)
def test_should_take_plain_values_fast(accepts: Any, name: str) -> None:
    for value in [*PLAIN[name], "null"]:
        assert accepts(f'{{"{name}":{value}}}'), value


def test_should_take_other_orders_unknown_names_and_spaces_fast(accepts: Any) -> None:
    assert accepts("{}")
    assert accepts(' { "x" : "a" ,\t"l":1 , "nobody":"knows","d":1.5, "n":null }\n')
    assert accepts('{"o":true,"m":-1.25,"f":2,"p":false,"q":12}')
    assert accepts('{"ké y":"é","l":1}')


@pytest.mark.parametrize(
    "text",
    [
        "", "1", "[]", "null", '{"l":1', '{"l":1}x', '{"l":1}{"l":2}', '{"l":1,"l":2}', '{"l":01}',
        '{"l":1e2}', '{"l":1.0}', '{"l":9223372036854775807}', '{"i":2147483648}', '{"s":32768}',
        '{"b":200}', '{"l":"1"}', '{"x":1}', '{"x":true}', '{"t":1}', '{"t":nul}', '{"t":TRUE}',
        '{"x":"a\\n"}', '{"x":"a\tb"}', '{"x":"a\nb"}', b'{"x":"\xff"}', b'{"x":"\xed\xa0\x80"}',
        b'{"\xff":1}', "{'l':1}", '{l:1}', '{"l":1,}', '{,"l":1}', '{"n":{}}', '{"n":[1]}',
        '{"d":NaN}', '{"d":"NaN"}', '{"d":1.}', '{"d":.5}', '{"d":1e5}', "\ufeff{}",
        '{"\\u006c":1}', '{"l" 1}', '{"l"::1}', '{"x":"open}', '{"l":1 2}', '{"l":--1}', '{"l":+1}',
    ],
)  # fmt: skip
def test_should_leave_what_is_unusual_to_spark(accepts: Any, text: str | bytes) -> None:
    assert not accepts(text)


def test_should_leave_a_schema_with_a_name_twice_to_spark(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    of = jvm.org.apache.spark.sql.types.StructType.fromDDL
    reader = jvm.org.apache.spark.sql.headgate.json.FlatJsonReader
    assert reader.supports(of("a INT, b INT"))
    assert not reader.supports(of("a INT").add("a", "int"))
    assert reader.isFlat(of("a INT, b STRING"))
    assert not reader.isFlat(of("a INT, b DATE"))


def test_should_notice_a_repeated_name_among_many_columns(spark: SparkSession) -> None:
    columns = [f"c{n}" for n in range(150)]
    schema = ", ".join(f"{c} INT" for c in columns)
    everything = ",".join(f'"{c}":{n}' for n, c in enumerate(columns))
    backwards = ",".join(f'"{c}":{n}' for n, c in reversed(list(enumerate(columns))))
    texts = [everything, backwards, f'{everything},"c149":7', '"c70":1,"c70":null']
    assert _disagreements(raw(spark, [f"{{{t}}}".encode() for t in texts]), schema) == []


def _doubles(rng: random.Random, count: int) -> list[float]:
    edge = [0.0, -0.0, 0.001, 0.00099, 9999999.99, 1e7, 1e-3, 123.456, 0.01, 100.1, 2e-3, 1e23,
            float("nan"), float("inf"), float("-inf"), 5e-324, 1.7976931348623157e308]  # fmt: skip
    cents = [rng.randrange(-(10**9), 10**9) / 100 for _ in range(count)]
    bits = [struct.unpack("<d", rng.randbytes(8))[0] for _ in range(count)]
    near = [c * (1 + 2**-52) for c in cents[: count // 4]]
    return edge + cents + bits + near


def _written(spark: SparkSession, frame: DataFrame) -> list[tuple[str, str]]:
    """Each row as the kernel writes it and as to_json does, where they differ."""
    jvm: Any = spark._jvm
    json = jvm.org.apache.spark.sql.headgate.json
    of = jvm.org.apache.spark.sql.types.DataType.fromJson(frame.schema.json())
    writer = json.JsonRowWriter(of, spark.conf.get("spark.sql.session.timeZone"), 0)
    out = json.JsonBytes(1)
    both = frame.select(F.struct("*").alias("r"), F.to_json(F.struct("*")).alias("e"))
    different = []
    for row in both._jdf.queryExecution().executedPlan().executeCollect():
        out.clear()
        writer.write(row.getStruct(0, len(frame.columns)), out)
        got, expected = out.toUtf8String(), row.getUTF8String(1)
        if not got.equals(expected):
            different.append((got.toString(), expected.toString()))
    return different


def test_should_write_numbers_as_to_json_does(spark: SparkSession) -> None:
    rng = random.Random(2)
    longs = [0, 1, -1, 9, 10, 99, 100, 2**63 - 1, -(2**63), 10**18, 10**18 - 1]
    rows = []
    for d in _doubles(rng, 500):
        n = rng.choice([*longs, rng.randrange(-(2**63), 2**63)])
        rows.append((n, n % 2**31, n % 2**15, n % 2**7, d, rng.random() < 0.5))
    frame = spark.createDataFrame(rows, "l LONG, i INT, s SHORT, b BYTE, d DOUBLE, t BOOLEAN")
    frame = frame.selectExpr("*", "-i AS ni", "CAST(d AS FLOAT) AS f", "CAST(l AS FLOAT) AS g")
    assert _written(spark, frame) == []


def test_should_write_strings_as_to_json_does(spark: SparkSession) -> None:
    rng = random.Random(3)
    alphabet = ["a", "B", " ", '"', "\\", "/", "\n", "\t", "\r", "\b", "\f", "\0", "\x1f", "\x7f",
                "é", "日", "🙂", "\u2028", "\ufeff"]  # fmt: skip
    strings = [c.encode() for c in alphabet] + [b""] + INVALID_UTF8
    for _ in range(600):
        text = "".join(rng.choices(alphabet, k=rng.randrange(30))).encode()
        cut = rng.randrange(len(text) + 1)
        bad = rng.choice(INVALID_UTF8) if rng.random() < 0.2 else b""
        strings.append(text[:cut] + bad + text[cut:])
    frame = spark.createDataFrame([(bytearray(s),) for s in strings], "b BINARY")
    assert _written(spark, frame.selectExpr("CAST(b AS STRING) AS s", "b")) == []


def test_should_write_every_type_as_to_json_does(spark: SparkSession) -> None:
    frame = spark.range(60).selectExpr(
        "IF(id % 3 = 0, NULL, id) AS l",
        "IF(id % 2 = 0, NULL, named_struct('a', id, 'b', CAST(NULL AS STRING), 'c', 'x\"')) AS st",
        "named_struct('n', CAST(NULL AS INT)) AS empty",
        "IF(id % 5 = 0, NULL, array(id, NULL, id * 2)) AS arr",
        "array(named_struct('k', 'v', 'd', id / 4.0D), NULL) AS arrs",
        "array(array('a', NULL), array()) AS deep",
        "map('k\"1', id, 'k2', NULL) AS m", "map(id, array(DATE'2024-01-01')) AS mi",
        "DATE'2024-02-29' AS day", "TIMESTAMP'2024-02-29 12:34:56.789123' AS at",
        "timestamp_millis(id * 86399999) AS moment", "TIMESTAMP_NTZ'2024-02-29 12:34:56' AS ntz",
        "CAST(id / 7 AS DECIMAL(20, 6)) AS dec", "CAST(1e-7 AS DECIMAL(38, 18)) AS small",
        "CAST('bytes' AS BINARY) AS bin", "INTERVAL '1-2' YEAR TO MONTH AS ym",
        "INTERVAL '1 02:03:04.5' DAY TO SECOND AS dt", "array(DATE'2024-01-01', NULL) AS days",
        "parse_json('{\"a\":[1,2.5]}') AS v", "NULL AS nothing", "id AS `a \"b\\\\ é`",
    )  # fmt: skip
    assert _written(spark, frame) == []
