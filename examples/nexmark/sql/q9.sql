-- of equal prices and times ROW_NUMBER takes any: bidder and extra decide here
SELECT a.id, a.itemName, a.description, a.initialBid, a.reserve, a.dateTime, a.expires, a.seller,
  a.category, a.extra, b.auction, b.bidder, b.price, b.dateTime AS bid_dateTime,
  b.extra AS bid_extra
FROM auction a JOIN bid b ON a.id = b.auction AND b.dateTime BETWEEN a.dateTime AND a.expires
QUALIFY row_number() OVER (
  PARTITION BY a.id ORDER BY b.price DESC, b.dateTime, b.bidder, b.extra) <= 1
