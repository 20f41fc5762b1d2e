-- of equal prices ROW_NUMBER takes any: time, bidder, then extra decide here
SELECT *, row_number() OVER (
  PARTITION BY auction ORDER BY price DESC, dateTime, bidder, extra) AS rank_number
FROM bid
QUALIFY rank_number <= 10
