-- of equal times ROW_NUMBER takes any: price, then extra decide here
SELECT auction, bidder, price, channel, url, dateTime, extra
FROM bid
QUALIFY row_number() OVER (
  PARTITION BY bidder, auction ORDER BY dateTime DESC, price DESC, extra) <= 1
