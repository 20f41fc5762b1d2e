-- ROW_NUMBER leaves open which of equal prices wins, and the average which of equal times is first
SELECT seller,
  CAST(sum(price) OVER last_ten AS BIGINT) // count(*) OVER last_ten AS avg_price
FROM (
  SELECT a.id, a.seller, b.price, b.dateTime
  FROM auction a JOIN bid b ON a.id = b.auction AND b.dateTime BETWEEN a.dateTime AND a.expires
  QUALIFY row_number() OVER (
    PARTITION BY a.id, a.seller ORDER BY b.price DESC, b.dateTime, b.bidder, b.extra) <= 1
)
WINDOW last_ten AS (
  PARTITION BY seller ORDER BY dateTime, id ROWS BETWEEN 10 PRECEDING AND CURRENT ROW)
